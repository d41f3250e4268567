// SPDX-License-Identifier: Apache-2.0
//
// //:verify on other people's implementations, as a user sees it: options,
// REPRO lines, bundles, vectors, messages, exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

fs::path Runfile(const std::string& name) {
  return fs::absolute(RunfilePath("property_tests/verify/" + name));
}

// A user's folder, with a program and a library under plain names.
class Foreign : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("user");
    fs::create_symlink(Runfile("examples/soft_topk_program"), folder_ / "mine");
    fs::create_symlink(Runfile("examples/soft_topk_library.so"),
                       folder_ / "mine.so");
  }
  ProgramResult Run(const std::string& arguments) const {
    return RunTestProgram("property_tests/verify/verify", arguments + " 2>&1",
                          folder_);
  }
  // Runs with SOFT_TOPK_BUG=temperature in the environment.
  ProgramResult RunBuggy(const std::string& arguments) const {
    ::setenv("SOFT_TOPK_BUG", "temperature", 1);
    const ProgramResult result = Run(arguments);
    ::unsetenv("SOFT_TOPK_BUG");
    return result;
  }
  int Answer(const std::string& cases, const std::string& outputs) const {
    const std::string command =
        "cd '" + folder_.string() + "' && ./mine " + cases + " " + outputs;
    return std::system(command.c_str());
  }

  fs::path folder_;
};

// The first REPRO line of `text`.
std::string ReproOf(const std::string& text) {
  const size_t begin = text.find("REPRO v");
  EXPECT_NE(begin, std::string::npos) << text;
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find('\n', begin) - begin);
}

TEST_F(Foreign, WhatIsRightPassesByEveryWayIn) {
  // Words may come before options as well as after them.
  for (const char* arguments :
       {"run op=lapsum --cases 5 impl=serve:./mine",
        "run impl=lib:./mine.so op=lapsum --cases 5",
        "run op=lapsum impl=lib:./mine.so case=3",
        "fuzz op=lapsum rows=3 impl=lib:./mine.so impl=cpu:v3 --seconds 1"}) {
    EXPECT_TRUE(EndedWith(Run(arguments), 0, "PASS: "));
  }
  EXPECT_TRUE(EndedWith(Run("explain op=lapsum rows=3 impl=serve:./mine"), 0,
                        "HOW THE BOUNDS ARE DERIVED"));
  EXPECT_TRUE(EndedWith(Run("list"), 0, "serve:PATH"));
  EXPECT_TRUE(EndedWith(Run("run op=rmsnorm impl=serve:./mine --cases 2"), 4,
                        "it says: only lapsum, not rmsnorm"));
}

TEST_F(Foreign, APlantedBugIsFoundAndItsLineAndBundleFindItAgain) {
  for (const std::string impl : {"serve:./mine", "lib:./mine.so"}) {
    const ProgramResult fuzz = RunBuggy(
        "fuzz op=lapsum rows=2 num_experts=5 fill=generic impl=" + impl +
        " --seconds 1 --bundles bundles");
    EXPECT_TRUE(EndedWith(fuzz, 1, "= temperature"));
    const std::string line = ReproOf(fuzz.output);
    EXPECT_TRUE(Says(line, "impl=" + impl + " "));
    EXPECT_TRUE(EndedWith(RunBuggy("run '" + line + "'"), 1, line));
    EXPECT_TRUE(
        EndedWith(RunBuggy("replay bundles/lapsum-1.h5"), 1, "= temperature"));
    // Once the bug is fixed, the same line and bundle pass.
    EXPECT_TRUE(EndedWith(Run("run '" + line + "'"), 0, "PASS: 1 cases"));
    EXPECT_TRUE(EndedWith(Run("replay bundles/lapsum-1.h5"), 0, "PASS"));
    EXPECT_TRUE(
        EndedWith(Run("replay bundles/lapsum-1.h5 impl=cpu:v3"), 0, "PASS"));
    // A bundle is a file of vectors, which a program can answer.
    ASSERT_EQ(Answer("bundles/lapsum-1.h5", "theirs.h5"), 0);
    EXPECT_TRUE(EndedWith(Run("check-vectors bundles/lapsum-1.h5 theirs.h5"), 0,
                          "PASS: 1 cases"));
  }
}

// Neither the name nor the words of this program are UTF-8.
TEST_F(Foreign, ReportsHoldWhateverAProgramSays) {
  const fs::path program = folder_ / "caf\xe9";
  WriteFileAtomically(program, "#!/bin/sh\nprintf 'f\\352te' >&2\nexit 3\n");
  fs::permissions(program, fs::perms::owner_all);
  EXPECT_TRUE(EndedWith(
      Run("run op=lapsum 'impl=serve:./caf\xe9' --cases 1 --no-shrink "
          "--json j.json --junit j.xml --log j.jsonl"),
      1, "FAIL: 1 cases"));
  for (const char* report : {"j.json", "j.xml", "j.jsonl"}) {
    const std::string text = ReadWholeFile(folder_ / report);
    EXPECT_TRUE(Says(text, "caf\xef\xbf\xbd", "f\xef\xbf\xbdte"));
    EXPECT_EQ(text.find_first_of("\xe9\xea"), std::string::npos) << report;
  }
}

TEST_F(Foreign, VectorsAreExportedAnsweredAndJudged) {
  EXPECT_TRUE(EndedWith(Run("export-vectors op=lapsum --cases 12 --out v.h5"),
                        0, "v.h5: 12 cases of 1 operation"));
  ASSERT_EQ(Answer("v.h5", "theirs.h5"), 0);
  EXPECT_TRUE(
      EndedWith(Run("check-vectors v.h5 theirs.h5 --json j.json --junit j.xml"),
                0, "PASS: 12 cases"));
  EXPECT_TRUE(Says(ReadWholeFile(folder_ / "j.json"), "\"verdict\": \"PASS\""));
  ::setenv("SOFT_TOPK_BUG", "temperature", 1);
  ASSERT_EQ(Answer("v.h5", "buggy.h5"), 0);
  ::unsetenv("SOFT_TOPK_BUG");
  const ProgramResult judged = Run("check-vectors v.h5 buggy.h5");
  EXPECT_TRUE(EndedWith(judged, 1, "= temperature"));
  EXPECT_TRUE(EndedWith(judged, 1, "group /cases/0000"));
  const std::string line = ReproOf(judged.output);
  EXPECT_TRUE(Says(line, "impl=recorded:v.h5,buggy.h5 "));
  EXPECT_TRUE(EndedWith(Run("run '" + line + "'"), 1, line));
  // Two operations, of which one is not offered.
  EXPECT_TRUE(
      EndedWith(Run("export-vectors op=lapsum op=rmsnorm --cases 2 --out w.h5"),
                0, "4 cases of 2 operations"));
  ASSERT_EQ(Answer("w.h5", "w_theirs.h5"), 0);
  EXPECT_TRUE(EndedWith(
      Run("check-vectors w.h5 w_theirs.h5"), 0,
      "not run: rmsnorm on recorded:w.h5,w_theirs.h5: it says: only"));
}

TEST_F(Foreign, AStopEndsACallAtOnceAndIsNoFailure) {
  WriteFileAtomically(folder_ / "hang", "#!/bin/sh\n: > began\nsleep 1000\n");
  fs::permissions(folder_ / "hang", fs::perms::owner_all);
  const std::string began = (folder_ / "began").string();
  const ProgramResult stopped =
      Run("run op=lapsum impl=serve:./hang 2>&1 & until [ -e '" + began +
          "' ] || ! kill -0 $!; do sleep 0.1; done; kill -TERM $!; wait $!");
  EXPECT_TRUE(EndedWith(stopped, 75, "0 cases ran and are reported above"));
  EXPECT_TRUE(Says(stopped.output, "STOPPED: 0 cases", "REPRO v7 verify run ",
                   "case=0 # not judged: the first of 64 cases in one call"));
  EXPECT_FALSE(Says(stopped.output, "FAIL lapsum"));
}

TEST_F(Foreign, RefusesWhatCannotBeMeantAndWritesNothing) {
  std::ofstream(folder_ / "text") << "text";
  const std::tuple<const char*, int, const char*> kRefused[] = {
      {"run op=lapsum impl=exec:./mine", 2, "use serve:PATH"},
      {"run op=lapsum impl=serve:./none", 5, "there is no file"},
      {"run op=lapsum impl=lib:./none.so", 5, "there is no file"},
      {"run op=lapsum impl=serve:./text", 2, "not executable"},
      {"run op=lapsum impl=lib:./text", 2, "cannot be loaded"},
      {"run op=lapsum impl=srve:./mine", 2, "unknown implementation"},
      {"run op=lapsum 'impl=serve:./my\"mine'", 2, "REPRO line cannot hold"},
      {"run op=lapsum 'impl=serve:./my mine'", 2, "'mine' is not KEY=VALUE"},
      {"run op=lapsun impl=serve:./mine", 2, "did you mean 'lapsum'"},
      {"run op=lapsum impl=serve:./mine --timeout 0", 2, "--timeout"},
      {"export-vectors op=lapsun --out never.h5", 2, "did you mean"},
      {"export-vectors --out never.h5", 2, "needs op=NAME"},
      {"export-vectors op=lapsum rowz=3 --out never.h5", 2, "did you mean"},
      {"export-vectors op=lapsum impl=none --out never.h5", 2, "leave impl="},
      {"export-vectors op=lapsum --cases 0 --out never.h5", 2, "--cases"},
      {"export-vectors op=lapsum", 2, "--out"},
      {"export-vectors op=lapsum --cases 1 --out no/such/v.h5", 5, "no/such"},
      {"check-vectors none.h5 none.h5", 5, "there is no file"},
      {"check-vectors run,1.h5 theirs.h5", 2,
       "a comma separates the two files"},
      {"check-vectors text text --json never.h5", 2, "text"},
      {"replay text impl=serve:./mine", 2, "text"},
      {"replay text impl=serve:./mine rows=3", 2,
       "rows=: the bundle determines"},
  };
  for (const auto& [arguments, code, part] : kRefused) {
    SCOPED_TRACE(arguments);
    EXPECT_TRUE(EndedWith(Run(arguments), code, part));
  }
  EXPECT_FALSE(fs::exists(folder_ / "never.h5"));
  // Outputs that are not HDF5, and vectors that were changed.
  Run("export-vectors op=lapsum --cases 1 --out v.h5");
  EXPECT_TRUE(
      EndedWith(Run("check-vectors v.h5 text"), 2, "HDF5 cannot open it"));
  EXPECT_TRUE(EndedWith(Run("replay v.h5 impl=cpu:v3"), 2, "not the bundle"));
  std::string bytes = ReadWholeFile(folder_ / "v.h5");
  bytes.back() ^= 1;
  WriteFileAtomically(folder_ / "v.h5", bytes);
  Answer("v.h5", "theirs.h5");
  EXPECT_TRUE(EndedWith(Run("check-vectors v.h5 theirs.h5"), 2, "v.h5"));
}

// README.md shows the whole example.
TEST(Page, HoldsTheExampleThatTheManualTestRuns) {
  const std::string page = ReadWholeFile(Runfile("foreign/README.md"));
  const std::string example =
      ReadWholeFile(Runfile("examples/torch_soft_topk.py"));
  EXPECT_TRUE(Says(page, "```python\n" + example + "```\n"));
}

}  // namespace
}  // namespace softmoe::verify
