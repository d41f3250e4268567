// SPDX-License-Identifier: Apache-2.0
//
// Checks the tables of faults against today's sources, without building a
// program.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/fault_table.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

// The files of the repository, by path.
const std::set<std::string>& Files() {
  static const std::set<std::string> files = [] {
    std::ifstream listing(RunfilePath("bazel/file_names.txt"));
    std::set<std::string> result;
    for (std::string path; std::getline(listing, path);) result.insert(path);
    return result;
  }();
  EXPECT_GT(files.size(), 700u) << "the list of files is cut";
  return files;
}

// Reads each file once.
const std::string* ReadSource(const std::string& file) {
  static std::map<std::string, std::string> texts;
  if (!Files().contains(file)) return nullptr;
  const auto [found, is_new] = texts.try_emplace(file);
  if (is_new) found->second = ReadWholeFile(RunfilePath(file));
  return &found->second;
}

TEST(Faults, CanBePlantedInTodaysSources) {
  const std::vector<Fault>& faults = AllFaults();
  std::vector<PlacedFault> placed;
  ASSERT_NO_THROW(placed = PlaceFaults(faults, ReadSource));
  std::map<std::string, std::string> copies;
  ASSERT_NO_THROW(copies = SwitchedCopies(ReadSource, placed));
  for (const Fault& fault : faults) {
    EXPECT_TRUE(Says(copies.at(fault.file), "(\"" + fault.id + "\")"))
        << fault.where;
  }
}

TEST(Sources, KnowNothingOfFaults) {
  int sources = 0;
  for (const std::string& file : Files()) {
    const std::string extension = fs::path(file).extension();
    const bool is_source =
        extension == ".cc" || extension == ".h" || extension == ".cu";
    if (!is_source || file.starts_with("property_tests/mutation/")) continue;
    ++sources;
    for (const char* trace : {"SOFTMOE_MUTANT", "mutation/switch.h"}) {
      EXPECT_EQ(ReadSource(file)->find(trace), std::string::npos)
          << file << " has '" << trace << "' in it";
    }
  }
  EXPECT_GT(sources, 500);
}

TEST(Faults, CoverEveryArea) {
  std::map<std::string, int> areas;
  for (const Fault& fault : AllFaults()) {
    EXPECT_FALSE(fault.fault.empty()) << fault.id;
    ++areas[fault.area()];
  }
  EXPECT_EQ(areas[kCanaryArea], 2);
  for (const char* area :
       {"lapsum", "routing", "budget", "kernels", "device", "numerics",
        "training", "harness", "reference", "reports", "plan", "readers"}) {
    EXPECT_GE(areas[area], 5) << area;
  }
}

// Two faults that count once share a file, and the named one counts.
TEST(Faults, CountWithAnotherOfTheirFile) {
  std::map<std::string, const Fault*> by_id;
  for (const Fault& fault : AllFaults()) by_id[fault.id] = &fault;
  for (const Fault& fault : AllFaults()) {
    if (fault.counts_with.empty()) continue;
    const auto found = by_id.find(fault.counts_with);
    ASSERT_TRUE(found != by_id.end())
        << fault.where << ": no fault " << fault.counts_with;
    EXPECT_EQ(found->second->file, fault.file) << fault.where;
    EXPECT_EQ(found->second->counts_with, "") << fault.where;
  }
}

TEST(Suites, HaveSources) {
  for (const Fault& fault : AllFaults()) {
    std::string source = fault.suite;
    if (source.starts_with("verify ")) continue;  // which refuses unknown names
    for (const char* variant : {"_asan", "_tsan", "_msan"}) {
      if (source.ends_with(variant)) source.erase(source.rfind('_'));
    }
    EXPECT_TRUE(Files().contains(source + ".cc") ||
                Files().contains(source + ".cu"))
        << fault.where << ": " << source << " is not there";
  }
}

// A test that moved into or out of its room's program would otherwise be looked
// for in the wrong program.
TEST(Suites, AreInTheProgramThatTheBuildMakes) {
  for (const Fault& fault : AllFaults()) {
    const fs::path suite = fault.suite;
    if (!Files().contains(fault.suite + ".cc")) continue;
    const std::string* build =
        ReadSource((suite.parent_path() / "BUILD").string());
    ASSERT_NE(build, nullptr) << fault.where;
    const bool is_a_program = build->find("\"" + suite.filename().string() +
                                          "\"") != std::string::npos;
    EXPECT_EQ(SuiteOf(fault.suite).program == fault.suite, is_a_program)
        << fault.where << ": see Programs in suites.cc";
  }
}

TEST(Suites, AreProgramsWithArguments) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(SuiteOf("core/files/json_lines_test").program, "core/files/test");
  EXPECT_EQ(SuiteOf("core/files/json_lines_test").arguments,
            (Words{"--gtest_fail_fast", "--file=json_lines_test"}));
  EXPECT_EQ(SuiteOf("trainer/run/simulated_device_test").arguments,
            (Words{"--gtest_fail_fast",
                   "--gtest_filter=*Bf16*:*IsInterrupted*:*ScoresRequests*"}));
  EXPECT_EQ(SuiteOf("kernels/x_shim_test_asan").program,
            "kernels/x_shim_test_asan");
  EXPECT_EQ(SuiteOf("kernels/x_shim_test_asan").failing_exit, 1);
  EXPECT_EQ(SuiteOf("kernels/x_shim_test_tsan").failing_exit, 43);
  EXPECT_EQ(SuiteOf("verify lapsum fill=plateau").arguments,
            (Words{"run", "op=lapsum", "--no-shrink", "impl=cpu:v3",
                   "impl=shim", "fill=plateau", "--cases=400"}));
  EXPECT_EQ(
      SuiteOf("verify gemm bf16").arguments,
      (Words{"run", "op=gemm", "--no-shrink", "impl=shim:bf16", "--cases=60"}));
}

// The only source in which the tables below plant faults.
constexpr char kFile[] = "a/b.cc";
constexpr char kText[] = "f(x);\ny = x + 1;\nf(x);\n";

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
  const SourceReader read = [](const std::string& file) {
    static const std::string text = kText;
    return file == kFile ? &text : nullptr;
  };
  return SwitchedCopies(read, PlaceFaults(ReadFaults(Table(table)), read));
}

TEST(PlaceFaults, FindsThemAll) {
  const std::string plus = "expression = \"x + 1\"\ninstead = \"x - 1\"";
  const std::string call =
      "before = \"x + 1; \"\nstatement = \"f(x);\"\ninstead = \"\"";
  const auto planted =
      Plant(Entry("area.plus", plus) + Entry("area.call", call));
  ASSERT_EQ(planted.size(), 1u);
  EXPECT_EQ(planted.at(kFile),
            "f(x);\ny = (SOFTMOE_MUTANT_ON(\"area.plus\") ? (x - 1) : (x + 1));"
            "\n{if (SOFTMOE_MUTANT_ON(\"area.call\")) {} else {f(x);}}\n");
}

TEST(PlaceFaults, NamesEveryOneThatCannotBePlanted) {
  const std::string plus = "expression = \"x + 1\"\ninstead = \"x - 1\"";
  const std::string message = MessageOf<DataError>([&] {
    Plant(Entry("area.missing", "expression = \"x + 2\"\ninstead = \"x\"") +
          Entry("area.twice", "statement = \"f(x);\"\ninstead = \"\"") +
          Entry("area.nowhere", plus, "a/c.cc") + Entry("area.same", plus) +
          Entry("area.same", plus));
  });
  EXPECT_TRUE(Says(
      message, "area.toml:1:1: area.missing in a/b.cc: 'x + 2' is not in it",
      "area.twice in a/b.cc: 'f(x);' is in lines 1, 3",
      "area.nowhere in a/c.cc: the file is not among the sources",
      "area.same in a/b.cc: is planted already, in "));
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
       "put its name into `before`"},
      {Entry("other.a", "expression = \"x\"\ninstead = \"y\""),
       "must be 'area.WHAT_IS_WRONG'"},
      {Entry("area.", "expression = \"x\"\ninstead = \"y\""),
       "must be 'area.WHAT_IS_WRONG'"},
      {"", "it holds no [[fault]]"},
  };
  for (const auto& [text, part] : expected) {
    const std::string message =
        MessageOf<DataError>([&text = text] { ReadFaults(Table(text)); });
    EXPECT_TRUE(Says(message, part));
  }
}

}  // namespace
}  // namespace softmoe::mutation
