// SPDX-License-Identifier: Apache-2.0
//
// Checks the tables of faults against today's sources, without building a
// program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/runfiles.h"
#include "property_tests/mutation/fault_table.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

// The sources of the tests and programs, by path.
const std::set<std::string>& Sources() {
  static const std::set<std::string> sources = [] {
    std::ifstream listing(RunfilePath("property_tests/mutation/sources.txt"));
    std::set<std::string> result;
    std::string path;
    while (std::getline(listing, path)) {
      if (!path.empty()) result.insert(path);
    }
    return result;
  }();
  EXPECT_GT(sources.size(), 300u) << "the list of sources is cut";
  return sources;
}

std::optional<std::string> ReadSource(const std::string& file) {
  if (!Sources().contains(file)) return std::nullopt;
  return ReadWholeFile(RunfilePath(file));
}

std::vector<Fault> EveryFault() {
  std::vector<Fault> faults = AllFaults();
  for (Fault& fault :
       ReadFaults(RunfilePath("property_tests/mutation/fixture.toml"))) {
    faults.push_back(std::move(fault));
  }
  return faults;
}

TEST(Faults, CanBePlantedInTodaysSources) {
  EXPECT_NO_THROW(PlantFaults(EveryFault(), ReadSource));
}

// The copies with faults are of today's sources.
TEST(Faults, TheCopiesAreThoseOfTodaysSources) {
  const std::map<std::string, std::string> planted =
      PlantFaults(EveryFault(), ReadSource);
  const fs::path tree = RunfilePath(
                            "property_tests/mutation/tree/"
                            "property_tests/mutation/fixture.cc")
                            .parent_path()
                            .parent_path()
                            .parent_path();
  int copies = 0;
  for (const std::string& file : Sources()) {
    const auto changed = planted.find(file);
    if (!fs::exists(tree / file)) {
      // A program built for use may have sources that no test has.
      EXPECT_TRUE(changed == planted.end()) << file << " has no copy";
      continue;
    }
    ++copies;
    const std::string expected =
        changed == planted.end() ? *ReadSource(file) : changed->second;
    EXPECT_TRUE(ReadWholeFile(tree / file) == expected)
        << "the copy of " << file << " is not made from it";
  }
  EXPECT_GT(copies, 300);
  for (const auto& entry : fs::recursive_directory_iterator(tree)) {
    const std::string path = entry.path().lexically_relative(tree).string();
    EXPECT_TRUE(entry.is_directory() || Sources().contains(path) ||
                path.starts_with("property_tests/mutation/switch."))
        << path << " is a copy of nothing";
  }
}

TEST(Sources, KnowNothingOfFaults) {
  for (const std::string& file : Sources()) {
    if (file.starts_with("property_tests/mutation/")) continue;
    for (const char* trace : {"SOFTMOE_MUTANT", "mutation/switch.h"}) {
      EXPECT_EQ(ReadSource(file)->find(trace), std::string::npos)
          << file << " has '" << trace << "' in it";
    }
  }
}

TEST(Faults, CoverEveryAreaAndEveryTier) {
  std::map<std::string, int> areas, tiers;
  for (const Mutant& mutant : AllMutants()) {
    EXPECT_FALSE(mutant.fault.empty()) << mutant.id;
    if (mutant.area() == kCanaryArea) continue;
    ++areas[mutant.area()];
    ++tiers[FindSuite(AllSuites(), mutant.suite).tier];
  }
  for (const char* area :
       {"lapsum", "routing", "budget", "kernels", "device", "numerics",
        "training", "harness", "reference", "reports", "plan", "readers"}) {
    EXPECT_GE(areas[area], 5) << area;
  }
  for (const std::string& tier : Tiers()) EXPECT_GE(tiers[tier], 1) << tier;
  EXPECT_EQ(tiers.size(), Tiers().size());
}

// Two faults that count once are in one file, and the named one counts.
TEST(Faults, CountWithAnotherOfTheirFile) {
  std::map<std::string, const Fault*> by_id;
  for (const Fault& fault : AllFaults()) by_id[fault.mutant.id] = &fault;
  for (const Fault& fault : AllFaults()) {
    if (fault.mutant.counts_with.empty()) continue;
    const auto found = by_id.find(fault.mutant.counts_with);
    ASSERT_TRUE(found != by_id.end())
        << fault.where << ": no fault " << fault.mutant.counts_with;
    EXPECT_EQ(found->second->file, fault.file) << fault.where;
    EXPECT_EQ(found->second->mutant.counts_with, "") << fault.where;
  }
}

// A suite that no mutant names would be built for nothing.
TEST(Suites, AreAllNeeded) {
  for (const Suite& suite : AllSuites()) {
    EXPECT_TRUE(std::ranges::any_of(AllMutants(), [&](const Mutant& mutant) {
      return mutant.suite == suite.name;
    })) << suite.name;
  }
}

// The one source in which the tables below plant faults.
constexpr char kFile[] = "a/b.cc";
constexpr char kText[] = "f(x);\ny = x + 1;\nf(x);\n";

std::string MessageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const DataError& error) {
    return error.what();
  }
  return "(no DataError)";
}

fs::path Table(const std::string& text) {
  const fs::path path = fs::path(::testing::TempDir()) / "area.toml";
  WriteFileAtomically(path, text);
  return path;
}

std::string Entry(const std::string& id, const std::string& rest,
                  const std::string& file = kFile) {
  return "[[fault]]\nid = \"" + id + "\"\nfault = \"wrong\"\nsuite = \"s\"\n" +
         "file = \"" + file + "\"\n" + rest + "\n";
}

std::map<std::string, std::string> Plant(const std::string& table) {
  return PlantFaults(ReadFaults(Table(table)),
                     [](const std::string& file) -> std::optional<std::string> {
                       if (file != kFile) return std::nullopt;
                       return kText;
                     });
}

TEST(PlantFaults, WritesThemAll) {
  const std::string plus = "expression = \"x + 1\"\ninstead = \"x - 1\"";
  const std::string call =
      "before = \"x + 1; \"\nstatement = \"f(x);\"\ninstead = \"\"";
  const auto planted =
      Plant(Entry("area.plus", plus) + Entry("area.call", call));
  ASSERT_EQ(planted.size(), 1u);
  EXPECT_EQ(planted.at(kFile),
            "f(x);\ny = (SOFTMOE_MUTANT_ON(\"area.plus\") ? (x - 1) : (x + 1));"
            "\n{if (SOFTMOE_MUTANT_ON(\"area.call\")) {} else {f(x);}}\n");
  // By offset, as a program that searches for places names it.
  EXPECT_EQ(Plant(Entry("area.at",
                        "offset = 2\nexpression = \"x\"\n"
                        "instead = \"0\""))
                .at(kFile),
            "f((SOFTMOE_MUTANT_ON(\"area.at\") ? (0) : (x)));\ny = x + 1;\nf(x)"
            ";\n");
}

TEST(PlantFaults, NamesEveryOneThatCannotBe) {
  const std::string plus = "expression = \"x + 1\"\ninstead = \"x - 1\"";
  const std::string message = MessageOf([&] {
    Plant(Entry("area.missing", "expression = \"x + 2\"\ninstead = \"x\"") +
          Entry("area.twice", "statement = \"f(x);\"\ninstead = \"\"") +
          Entry("area.nowhere", plus, "a/c.cc") + Entry("area.same", plus) +
          Entry("area.same", plus) +
          Entry("area.offset", plus + "\noffset = 3"));
  });
  for (const char* part :
       {"area.toml:1:1: area.missing in a/b.cc: 'x + 2' is not in it",
        "area.twice in a/b.cc: 'f(x);' is in lines 1, 3",
        "area.nowhere: a/c.cc is not among the sources",
        "area.same is planted already, in ",
        "area.offset in a/b.cc: 'x + 1' is not at offset 3"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << "\nis not in\n"
                                                     << message;
  }
}

TEST(ReadFaults, RefusesWhatIsNoTableOfFaults) {
  const std::string both =
      "expression = \"x\"\nstatement = \"x;\"\ninstead = \"y\"";
  const std::string unknown =
      "expression = \"x\"\ninstead = \"y\"\nbefor = \"\"";
  const std::map<std::string, std::string> expected = {
      {Entry("area.a", both), "either `expression` or `statement`"},
      {Entry("area.a", "instead = \"y\""), "either `expression` or"},
      {Entry("area.a", "expression = \"x\""), "'instead' is missing"},
      {Entry("area.a", unknown), "befor"},
      {Entry("area.a", "expression = \".size = n\"\ninstead = \".size = m\""),
       "its name belongs to `before`"},
      {Entry("other.a", "expression = \"x\"\ninstead = \"y\""),
       "must be 'area.WHAT_IS_WRONG'"},
      {Entry("area.", "expression = \"x\"\ninstead = \"y\""),
       "must be 'area.WHAT_IS_WRONG'"},
      {"", "it holds no [[fault]]"},
  };
  for (const auto& [text, part] : expected) {
    const std::string message =
        MessageOf([&text = text] { ReadFaults(Table(text)); });
    EXPECT_NE(message.find(part), std::string::npos) << part << "\nis not in\n"
                                                     << message;
  }
}

}  // namespace
}  // namespace softmoe::mutation
