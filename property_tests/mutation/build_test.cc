// SPDX-License-Identifier: Apache-2.0
//
// A few files that are compiled, linked and run for real, with faults in them.
#include "property_tests/mutation/build.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/kill.h"
#include "property_tests/mutation/suites.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

const std::map<std::string, std::string>& Sources() {
  static const std::map<std::string, std::string> sources = {
      {"golden/a.h",
       "template <typename T> T Larger(T a, T b) { return a > b ? a : b; }\n"
       "#ifdef IN_C\ninline int kSize = 1;\n#endif\n"},
      {"golden/b.cc",
       "#include \"golden/a.h\"\n"
       "int Twice(int x) { return 2 * x; }\n"
       "int Unused(int x) { return x + 5; }\n"
       "int Sum(int n) {\n  int sum = 0;\n"
       "  for (int i = 0; i < n; ++i) sum += i;\n  return sum;\n}\n"},
      {"kernels/c.cc",
       "#define IN_C\n#include \"golden/a.h\"\n"
       "int Size(int x) { return Larger(x, kSize); }\n"},
      // Nobody asks for it, so nobody misses what it asks for.
      {"kernels/d.cc",
       "int Missing(int x);\nint Lonely(int x) { return Missing(x); }\n"},
      // Drawn from one file, but not from the other.
      {"golden/b_test.cc",
       "int Twice(int);\nint Sum(int);\nint Size(int);\nint Unused(int);\n"
       "int main(int argc, char**) {\n"
       "  if (Twice(3) != 6 || Size(4) != 4) return 1;\n"
       "  if (argc > 5) return Unused(argc);\n"
       "  return Sum(10) > 0 ? 0 : 1;\n}\n"},
  };
  return sources;
}

// `text`, which is in the file once, becomes `instead`.
PlacedFault Planted(const std::string& id, const std::string& file,
                    const std::string& text, const std::string& instead,
                    Syntax syntax = Syntax::kExpression) {
  const size_t at = Sources().at(file).find(text);
  EXPECT_NE(at, std::string::npos) << text;
  return {id, file, {at, at + text.size()}, syntax, "constant", instead};
}

class BuildTest : public ::testing::Test {
 protected:
  BuildTest()
      : test_(Sources()),
        tree_(test_.project(), test_.folder() / "tree"),
        compiler_(test_.project(), tree_, "compiler"),
        build_(test_.project(), tree_, compiler_,
               {.folder = test_.folder() / "build"}) {}

  // What becomes of each fault, all of which build.
  std::map<std::string, MeasuredFault> Kill(
      const std::vector<PlacedFault>& faults) {
    EXPECT_TRUE(build_.Make(faults).empty());
    std::vector<std::string> ids;
    for (const PlacedFault& fault : faults) ids.push_back(fault.id);
    const auto scratch = test_.folder() / "scratch";
    std::map<std::string, CleanRun> clean;
    std::vector<const Suite*> suites;
    for (const Suite& suite : build_.suites()) suites.push_back(&suite);
    KillOptions options;
    options.least_timeout = 5;
    options.run = [&](const Suite& suite, const std::string& id, double time) {
      return RunSuite(suite, id, time, scratch, ids);
    };
    RunWithoutFaults(suites, options,
                     [&](const Suite& suite, const CleanRun& run,
                         const std::string&) { clean[suite.name] = run; });
    std::map<std::string, MeasuredFault> result;
    for (const PlacedFault& fault : faults) {
      MeasuredFault sampled;
      sampled.fault = fault;
      result[fault.id] = *TryToKill(
          sampled, SuitesFor(fault.id, build_.suites(), clean), clean, options);
    }
    return result;
  }

  TestProject test_;
  SourceTree tree_;
  Compiler compiler_;
  Build build_;
};

TEST_F(BuildTest, SeesWhatBecomesOfAFault) {
  const auto sampled = Kill({
      Planted("s1.0", "golden/b.cc", "2 * x", "3 * x"),
      Planted("s1.1", "golden/b.cc", "2", "4"),
      Planted("s1.2", "golden/b.cc", "sum += i;", "", Syntax::kStatement),
      Planted("s1.3", "golden/b.cc", "sum += i", "sum -= i"),
      Planted("s1.4", "golden/b.cc", "i < n", "i <= n"),
      Planted("s1.5", "golden/b.cc", "x + 5", "x - 5"),
      Planted("s1.6", "golden/b.cc", "++i", "i += 0"),
      Planted("s1.7", "golden/a.h", "a > b", "a < b"),
      Planted("s1.8", "kernels/c.cc", "kSize", "*(int*)0"),
  });
  const std::map<std::string, Fate> expected = {
      {"s1.0", Fate::kFailed},   {"s1.1", Fate::kFailed},
      {"s1.2", Fate::kFailed},   {"s1.3", Fate::kFailed},
      {"s1.4", Fate::kSurvived}, {"s1.5", Fate::kNotReached},
      {"s1.6", Fate::kTimedOut}, {"s1.7", Fate::kFailed},
      {"s1.8", Fate::kCrashed}};
  for (const auto& [id, fate] : expected) {
    EXPECT_STREQ(FateName(sampled.at(id).fate), FateName(fate)) << id;
    EXPECT_EQ(sampled.at(id).suite, IsKilled(fate) ? "golden/b_test" : "");
    EXPECT_EQ(sampled.at(id).suites, fate == Fate::kNotReached ? 0 : 1);
  }
}

TEST_F(BuildTest, ChecksEachFaultAlone) {
  const std::vector<std::string> problems = build_.Check({
      Planted("s1.0", "golden/b.cc", "2 * x", "3 * x"),
      Planted("s1.1", "golden/b.cc", "2 * x", "3 * y"),
      // Compiles without a switch, but has another type than the original.
      Planted("s1.2", "golden/b.cc", "2 * x", "{}"),
      Planted("s1.3", "golden/b.cc", "2 * x", "3 * x // why"),
  });
  EXPECT_EQ(problems[0], "");
  EXPECT_TRUE(Says(problems[1], "was not declared"));
  EXPECT_NE(problems[2], "");
  EXPECT_NE(problems[3], "");
}

// One fault compiles in the unit where it was checked, and not in the other one
// with the header: only that fault is left out.
TEST_F(BuildTest, FindsWhatBreaksIt) {
  const std::vector<PlacedFault> faults = {
      Planted("s1.0", "golden/b.cc", "2 * x", "3 * x"),
      Planted("s1.1", "golden/a.h", "a > b", "a < b"),
      Planted("s1.2", "golden/a.h", "return a > b ? a : b;",
              "static_assert(sizeof(T) == 8); return b;", Syntax::kStatement),
      Planted("s1.3", "kernels/c.cc", "kSize", "0"),
  };
  EXPECT_EQ(build_.Check(faults), std::vector<std::string>(4));
  const std::map<std::string, std::string> broken = build_.Make(faults);
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken.begin()->first, "s1.2");
  EXPECT_TRUE(Says(broken.begin()->second, "static assertion"));
  EXPECT_TRUE(build_.Make({faults[0], faults[1], faults[3]}).empty());
  EXPECT_EQ(build_.suites().size(), 1u);
}

TEST_F(BuildTest, BuildsOnlyWhatCanReachAFault) {
  EXPECT_TRUE(build_.Make({}).empty());
  EXPECT_TRUE(build_.suites().empty());
}

TEST_F(BuildTest, ProvesEquivalenceByEqualObjects) {
  EXPECT_TRUE(
      build_.HasEqualObjects(Planted("s1.0", "golden/b.cc", "2 * x", "x * 2")));
  EXPECT_TRUE(
      build_.HasEqualObjects(Planted("s1.1", "golden/b.cc", "++i", "i++")));
  EXPECT_FALSE(
      build_.HasEqualObjects(Planted("s1.2", "golden/b.cc", "2 * x", "3 * x")));
  // Equal in one unit, different in the other.
  EXPECT_FALSE(
      build_.HasEqualObjects(Planted("s1.3", "golden/a.h", "a > b", "a < b")));
  EXPECT_FALSE(
      build_.HasEqualObjects(Planted("s1.4", "golden/b.cc", "2 * x", "3 * y")));
}

// What nvcc has made keeps its name when it changes.
TEST(Build, LinksAgainWhatHasAnotherArchive) {
  const std::map<std::string, std::string> sources = {
      {"golden/e_test.cc", "int Limit();\nint main() { return Limit(); }\n"}};
  const TestProject test(sources);
  Project project = test.project();
  // (To a linker an object will do.)
  const std::string archive = (test.folder() / "limit.o").string();
  project.programs.at("golden/e_test").archives = {archive};
  SourceTree tree(project, test.folder() / "tree");
  const Compiler compiler(project, tree, "compiler");
  Build build(project, tree, compiler, {.folder = test.folder() / "build"});
  for (const int limit : {0, 1}) {
    WriteFileAtomically(
        test.folder() / "limit.cc",
        "int Limit() { return " + std::to_string(limit) + "; }\n");
    ASSERT_EQ(RunProgram({project.compiler, "-c", "limit.cc", "-o", archive},
                         test.folder())
                  .exit_status,
              0);
    ASSERT_TRUE(build.Make({}, {"golden/e_test"}).empty());
    const std::string program = (build.Runfiles() / "golden/e_test").string();
    EXPECT_EQ(RunProgram({program}, test.folder()).exit_status, limit);
  }
}

TEST(RunSuite, BeginsInAFreshFolder) {
  const std::filesystem::path scratch = FreshFolder("scratch");
  const Suite suite = {
      .name = "s",
      .program = "bin/sh",
      .arguments = {"-c", "basename $TEST_TMPDIR; ! test -e $TEST_TMPDIR/left"},
      .runfiles = "/"};
  const int number = std::stoi(RunSuite(suite, "", 60, scratch).output);
  // What a driver that was killed left where the next run will be.
  const auto next = scratch / std::to_string(number + 1);
  MakeFolder(next);
  WritePlain(next / "left", "");
  const SuiteRun run = RunSuite(suite, "", 60, scratch);
  EXPECT_EQ(run.output, std::to_string(number + 1) + "\n");
  EXPECT_EQ(run.code, 0);
}

TEST(SourceTree, KnowsWhatAUnitIncludes) {
  const TestProject test(Sources());
  SourceTree tree(test.project(), test.folder() / "tree");
  const Unit& unit = test.project().units.at("kernels/c.cc.o");
  EXPECT_EQ(tree.Closure(unit),
            (std::set<std::string>{"golden/a.h", "kernels/c.cc"}));
  std::map<std::string, std::string> changed = Sources();
  changed["golden/a.h"] += "\n";
  const TestProject other(changed);
  EXPECT_NE(SourceTree(other.project(), other.folder() / "tree").digest(),
            tree.digest());
  const TestProject same(Sources());
  EXPECT_EQ(SourceTree(same.project(), same.folder() / "tree").digest(),
            tree.digest());
}

TEST(SourceTree, LooksForHeadersInTheFoldersOfTheFlags) {
  const TestProject test({{"kernels/e.cc", "#include <lib.h>\n"},
                          {"golden/include/lib.h", "#include \"golden/a.h\"\n"},
                          {"golden/a.h", "#include <vector>\n"}});
  SourceTree tree(test.project(), test.folder() / "tree");
  Unit unit = test.project().units.at("kernels/e.cc.o");
  EXPECT_EQ(tree.Closure(unit), (std::set<std::string>{"kernels/e.cc"}));
  unit.key = "kernels/e/e.cc.o";
  unit.flags = {"-I.", "-Igolden/include"};
  EXPECT_EQ(tree.Closure(unit),
            (std::set<std::string>{"golden/a.h", "golden/include/lib.h",
                                   "kernels/e.cc"}));
}

TEST(Project, ReadsListingsAndRefusesOthers) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "a.mutants.json";
  Project project;
  WriteFileAtomically(
      file, R"({"sources":[["golden/a.cc","golden/a.cc"]],)"
            R"("units":[{"key":"golden/a/a.cc.o","source":"golden/a.cc",)"
            R"("flags":["-DX"],"always_linked":true,"compiler":"",)"
            R"("is_test":false}],"program":null})");
  ReadListing(file, "/root", project);
  EXPECT_EQ(project.sources.at("golden/a.cc"), "/root/golden/a.cc");
  EXPECT_EQ(project.units.at("golden/a/a.cc.o").flags,
            std::vector<std::string>{"-DX"});
  for (const char* text : {"", "[1]", "{}", R"({"sources":[["a"]]})"}) {
    WriteFileAtomically(file, text);
    EXPECT_THROW(ReadListing(file, "/root", project), DataError) << text;
    EXPECT_THROW(ReadFlags(file, project), DataError) << text;
  }
}

TEST(IsProduct, KnowsWhatIsThereForTestsOnly) {
  for (const char* path :
       {"golden/claims.cc", "reference/lapsum.h", "trainer/run/train_main.cc",
        "kernels/cuda/router_kernels.cu", "optimized/allocation.cc"}) {
    EXPECT_TRUE(IsProduct(path)) << path;
  }
  for (const char* path :
       {"golden/claims_test.cc", "reference/testing/tiny_model.h",
        "core/paths.cc", "trainer/checkpoint_fuzz.cc",
        "kernels/simt/shim/block.cc", "kernels/simt/device/runtime.cc",
        "kernels/simt/ptx/program.cc", "kernels/rows_benchmark.cc",
        "golden/FORMAT.md", "property_tests/verify/case.cc",
        "experiments/grid_main.cc", "kernels/kernel_test_support.h",
        "golden/miniature_test_util.cc"}) {
    EXPECT_FALSE(IsProduct(path)) << path;
  }
}

}  // namespace
}  // namespace softmoe::mutation
