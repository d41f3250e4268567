// SPDX-License-Identifier: Apache-2.0
//
// The table and the sources name the same mutants, once each.
#include "property_tests/mutation/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/atomic_file.h"
#include "core/runfiles.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {
namespace {

// Adds the ids that `text` plants: SOFTMOE_MUTANT("id" and
// SOFTMOE_MUTANT_SKIPS("id", with any white space before the quotes. (By hand:
// <regex> does not pass g++ 12's own warnings under AddressSanitizer.)
void CountPlantedIds(std::string_view text, std::map<std::string, int>& ids) {
  constexpr std::string_view kName = "SOFTMOE_MUTANT", kOther = "_SKIPS";
  for (size_t at; (at = text.find(kName)) != text.npos;) {
    text.remove_prefix(at + kName.size());
    std::string_view rest = text;
    if (rest.starts_with(kOther)) rest.remove_prefix(kOther.size());
    if (!rest.starts_with('(')) continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\n"), rest.size()));
    if (!rest.starts_with('"')) continue;
    rest.remove_prefix(1);
    ++ids[std::string(rest.substr(0, rest.find('"')))];
  }
}

// How often each id is planted in the sources of the tests and programs.
std::map<std::string, int> PlantedIds() {
  std::ifstream listing(RunfilePath("property_tests/mutation/sources.txt"));
  std::map<std::string, int> ids;
  std::string path;
  int sources = 0;
  while (std::getline(listing, path)) {
    if (path.empty() || path == "core/mutant.h") continue;  // its own example
    ++sources;
    CountPlantedIds(ReadWholeFile(RunfilePath(path)), ids);
  }
  EXPECT_GT(sources, 300) << "the list of sources is cut";
  return ids;
}

TEST(Mutants, AreThoseOfTheSources) {
  const std::map<std::string, int> planted = PlantedIds();
  std::set<std::string> known;
  for (const Mutant& mutant : AllMutants()) {
    EXPECT_TRUE(known.insert(mutant.id).second) << mutant.id << " twice";
    const auto found = planted.find(mutant.id);
    ASSERT_TRUE(found != planted.end()) << mutant.id << " is nowhere planted";
    EXPECT_EQ(found->second, 1) << mutant.id << " is planted more than once";
  }
  for (const auto& [id, count] : planted) {
    EXPECT_TRUE(known.contains(id)) << id << " is not in mutants.cc";
  }
}

TEST(Mutants, CoverEveryAreaAndEveryTier) {
  std::map<std::string, int> areas, tiers;
  for (const Mutant& mutant : AllMutants()) {
    EXPECT_FALSE(mutant.fault.empty()) << mutant.id;
    if (mutant.area() == kCanaryArea) continue;
    ++areas[mutant.area()];
    ++tiers[FindSuite(AllSuites(), mutant.suite).tier];
  }
  for (const char* area : {"lapsum", "routing", "budget", "kernels", "numerics",
                           "training", "harness"}) {
    EXPECT_GE(areas[area], 5) << area;
  }
  EXPECT_EQ(areas.size(), 7u);
  for (const std::string& tier : Tiers()) EXPECT_GE(tiers[tier], 1) << tier;
  EXPECT_EQ(tiers.size(), Tiers().size());
}

// A suite that no mutant is declared to is built for nothing.
TEST(Suites, AreAllNeeded) {
  for (const Suite& suite : AllSuites()) {
    int mutants = 0;
    for (const Mutant& mutant : AllMutants()) {
      mutants += mutant.suite == suite.name;
    }
    EXPECT_GT(mutants, 0) << suite.name;
  }
}

}  // namespace
}  // namespace softmoe::mutation
