// SPDX-License-Identifier: Apache-2.0
//
// A few files that are compiled, linked and run for real, with faults in them.
#include "property_tests/mutation/build.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
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
      // Nothing refers to this, so its undefined symbol is not missed.
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

// The fault that replaces `text`, which is in the file once, by `instead`.
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

  // The fate of each fault, all of which build.
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
      return RunSuite(suite, id, time, scratch, options.stop, ids);
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

// One fault compiles in the unit where it was checked, but not in the other
// unit with that header: only that fault is left out.
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

// A test that returns the number in an archive, which is not one of its units.
class LinkTest : public ::testing::Test {
 protected:
  LinkTest()
      : test_(std::map<std::string, std::string>{
            {"golden/e_test.cc",
             "int Limit();\nint main() { return Limit(); }\n"}}),
        project_(test_.project()) {
    Program& program = project_.programs.at("golden/e_test");
    program.archives = {archive_};
    program.compiler = linker_;
    tree_.emplace(project_, test_.folder() / "tree");
    compiler_.emplace(project_, *tree_, "compiler");
    build_.emplace(project_, *tree_, *compiler_,
                   BuildOptions{.folder = test_.folder() / "build"});
    SetLinker("");
  }

  // Replaces the archive under its name. (A linker accepts an object as well.)
  void SetLimit(int limit) {
    WriteFileAtomically(
        test_.folder() / "limit.cc",
        "int Limit() { return " + std::to_string(limit) + "; }\n");
    EXPECT_EQ(RunProgram({project_.compiler, "-c", "limit.cc", "-o", archive_},
                         test_.folder())
                  .exit_status,
              0);
  }
  // Sets a linker that runs `then` after linking; "$2" is its output.
  void SetLinker(const std::string& then) {
    WriteFileAtomically(linker_, "#!/bin/sh\n" + project_.compiler +
                                     " \"$@\" || exit 1\n" + then + "\n");
    std::filesystem::permissions(linker_, std::filesystem::perms::owner_all);
  }
  void Make() { EXPECT_TRUE(build_->Make({}, {"golden/e_test"}).empty()); }
  int Run() {
    const std::string program = (build_->Runfiles() / "golden/e_test").string();
    return RunProgram({program}, test_.folder()).exit_status;
  }

  const TestProject test_;
  const std::string archive_ = (test_.folder() / "limit.o").string();
  const std::string linker_ = (test_.folder() / "linker").string();
  Project project_;
  std::optional<SourceTree> tree_;
  std::optional<Compiler> compiler_;
  std::optional<Build> build_;
};

// What nvcc makes keeps its name when its content changes.
TEST_F(LinkTest, LinksAgainWhatHasAnotherArchive) {
  for (const int limit : {0, 1}) {
    SetLimit(limit);
    Make();
    EXPECT_EQ(Run(), limit);
  }
}

// The driver may be killed when the new program is in place but its key is not.
TEST_F(LinkTest, LinksAgainWhatIsInPlaceWithoutItsKey) {
  SetLimit(0);
  Make();
  SetLimit(1);
  SetLinker("mv \"$2\" \"${2%.new}\"; exit 1");
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Make(); }),
                   "cannot link golden/e_test"));
  EXPECT_EQ(Run(), 1);
  SetLimit(0);
  SetLinker("");
  Make();
  EXPECT_EQ(Run(), 0);
}

// If the compiler had no memory, it is not known whether the source is wrong.
TEST(Build, BlamesNoSourceForACompilerThatWasKilled) {
  const TestProject test(Sources());
  Project project = test.project();
  const auto compiler = test.folder() / "compiler";
  project.compiler = compiler.string();
  SourceTree tree(project, test.folder() / "tree");
  const Compiler as_usual(project, tree, "compiler");
  Build build(project, tree, as_usual, {.folder = test.folder() / "build"});
  const PlacedFault fault = Planted("s1.0", "golden/b.cc", "2 * x", "3 * x");
  const auto become = [&](const std::string& script) {
    WriteFileAtomically(compiler, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  };
  for (const char* script :
       {"echo 'g++: fatal error: Killed signal terminated program cc1plus'; "
        "exit 1",
        "echo 'clang: error: unable to execute command: Killed'; exit 1",
        "echo 'fatal error: error writing to a.o: No space left'; exit 1",
        "kill -9 $$", "exit 137"}) {
    constexpr char kReason[] =
        "a compiler had no memory or disk left: start again";
    become(script);
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { build.Check({fault}); }),
                     kReason))
        << script;
    EXPECT_TRUE(
        Says(MessageOf<EnvironmentError>([&] { build.HasEqualObjects(fault); }),
             kReason))
        << script;
  }
  become("echo 'a.cc:1: error: no such thing'; exit 1");
  EXPECT_EQ(build.Check({fault}), std::vector<std::string>{"no such thing"});
  EXPECT_FALSE(build.HasEqualObjects(fault));
}

bool Never() { return false; }

TEST(SuiteCommand, DoesWhatTheDriverDoes) {
  const Suite suite = {
      .name = "s",
      .program = "bin/sh",
      .arguments = {"-c",
                    "echo $SOFTMOE_MUTANT, $RC_PARAMS, $TEST_SRCDIR; pwd"},
      .runfiles = "/"};
  const SuiteRun run =
      RunSuite(suite, "a.x", 60, FreshFolder("scratch"), Never);
  EXPECT_TRUE(Says(run.output, "a.x, seed=", " noshrink=1, /\n/\n"));
  // (This test's own seed is not that of the command.)
  const ProgramResult by_hand = RunProgram(
      {"env", "-u", "RC_PARAMS", "sh", "-c", SuiteCommand(suite, "a.x")}, "/");
  EXPECT_EQ(by_hand.output, run.output);
}

// No suite of another driver, or of this one, uses the folder.
TEST(RunSuite, BeginsInAFolderOfItsOwn) {
  const std::filesystem::path scratch = FreshFolder("scratch");
  const Suite suite = {.name = "s",
                       .program = "bin/sh",
                       .arguments = {"-c", "basename $TEST_TMPDIR"},
                       .runfiles = "/"};
  const std::string own = std::to_string(getpid()) + "-";
  const std::string name = RunSuite(suite, "", 60, scratch, Never).output;
  ASSERT_TRUE(name.starts_with(own)) << name;
  const int number = std::stoi(name.substr(own.size()));
  EXPECT_EQ(RunSuite(suite, "", 60, scratch, Never).output,
            fmt::format("{}{}\n", own, number + 1));
}

// Otherwise Ctrl-C would wait for the suite, or leave it running forever.
TEST(RunSuite, EndsWhenAskedTo) {
  const std::filesystem::path scratch = FreshFolder("scratch");
  const std::filesystem::path began = scratch / "began";
  const Suite suite = {.name = "s",
                       .program = "bin/sh",
                       .arguments = {"-c", "touch '" + began.string() +
                                               "'; sleep 60; echo done"},
                       .runfiles = "/"};
  const SuiteRun run = RunSuite(suite, "", 90, scratch,
                                [&] { return std::filesystem::exists(began); });
  EXPECT_LT(run.seconds, 30);
  EXPECT_EQ(run.output, "");
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
