// SPDX-License-Identifier: Apache-2.0
//
// Other people's programs, as serve:. Correct ones pass, planted faults are
// found and shrunk as in our own kernels, and any other misbehavior of a
// program ends in a verdict that says so.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/foreign/foreign_implementations.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

constexpr char kExample[] = "examples/soft_topk_program";
constexpr char kHostile[] = "foreign/hostile_program";

std::string Path(const std::string& name) {
  return fs::absolute(RunfilePath("property_tests/verify/" + name)).string();
}

// Sets an environment variable for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Suite RunCases(const std::string& impl, int64_t cases,
               const std::string& words = "") {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {impl};
  options.fixed = ParseWords(words);
  options.cases = cases;
  options.max_shrunk = 1;
  return RunCampaign(options);
}

// One case under $HOSTILE = mode.
CaseResult CheckHostile(const std::string& mode) {
  const Variable hostile("HOSTILE", mode);
  const std::string name = "serve:" + Path(kHostile);
  const auto implementation = MakeImplementation(name);
  // Is checked after another call, so that the file has two groups.
  return CheckCase(
      ParseCase("op=lapsum rows=3 num_experts=5 case=1 impl=" + name),
      *implementation);
}

std::string Impl(const char* program) { return "serve:" + Path(program); }

std::vector<Case> FirstCases(int count, const std::string& words) {
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    cases.push_back(ParseCase(words + " case=" + std::to_string(i)));
  }
  return cases;
}

TEST(Program, TheCorrectExamplePassesManyCases) {
  // More cases than a batch holds, so that a second file is sent.
  const Suite result = RunCases(Impl(kExample), 70);
  EXPECT_EQ(result.cases(), 70) << SuiteText(result);
  EXPECT_EQ(result.exit_code(), ExitCode::kDone) << SuiteText(result);
}

TEST(Program, APlantedBugIsFoundShrunkAndNamed) {
  const Variable bug("SOFT_TOPK_BUG", "temperature");
  const Suite result =
      RunCases(Impl(kExample), 2, "rows=4 num_experts=9 fill=generic");
  EXPECT_EQ(result.exit_code(), ExitCode::kFailed);
  ASSERT_EQ(result.failures().size(), 1u) << SuiteText(result);
  const CaseResult& smallest = result.failures()[0].smallest;
  EXPECT_EQ(smallest.output, "d_scores");
  EXPECT_EQ(smallest.c.Size("rows"), 1);
  EXPECT_LE(smallest.c.Size("num_experts"), 3);
  ASSERT_FALSE(smallest.hints.empty());
  EXPECT_TRUE(Says(smallest.hints[0], "= temperature"));
  // The line names the same case, and the case fails again.
  const Case again = ParseCase(StripRepro(ReproLine(smallest)));
  EXPECT_EQ(again, smallest.c);
  EXPECT_TRUE(CheckCase(again, *MakeImplementation(again.impl)).failed());
}

TEST(Program, ACrashOfSomeCasesFailsThoseAndShrinks) {
  const Variable bug("SOFT_TOPK_BUG", "crash");  // above 20 rows
  const std::string words = "num_experts=2 fill=generic temperature=3";
  ::testing::internal::CaptureStderr();
  const Suite result = RunCases(Impl(kExample), 12, words);
  EXPECT_TRUE(Says(::testing::internal::GetCapturedStderr(),
                   "a file of 12 cases failed; running each case on its own: "
                   "the program crashed"));
  int64_t above = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    above += ParseCase("op=lapsum case=" + std::to_string(i)).Size("rows") > 20;
  }
  ASSERT_GT(above, 0);
  ASSERT_LT(above, 12);
  const UnitStatistics& unit = result.units().begin()->second;
  EXPECT_EQ(unit.Count(Status::kFail), above);
  EXPECT_EQ(unit.Count(Status::kPass), 12 - above);
  const CaseResult& smallest = result.failures().at(0).smallest;
  EXPECT_EQ(smallest.c.Size("rows"), 21);
  EXPECT_EQ(smallest.reason, "the program crashed (Aborted)");
}

// A script around the example, which it calls `mine`.
std::string Around(const char* program, const std::string& name,
                   const std::string& lines) {
  const fs::path script = FreshFolder(name) / "program";
  std::ofstream(script) << "#!/bin/sh\nmine='" << Path(program) << "'\n"
                        << lines << "\n";
  fs::permissions(script, fs::perms::owner_all);
  return "serve:" + script.string();
}

// Answers one line and is gone a moment later.
constexpr char kOneLine[] =
    "read -r line || exit 0; printf '%s\\n' \"$line\" | \"$mine\"; sleep 0.1; ";

TEST(Program, WhatEndsBadlyAfterItsAnswersFails) {
  const std::string words = "rows=3 num_experts=5 fill=generic";
  const auto run = [&](const std::string& name, const std::string& lines) {
    return RunCases(Around(kExample, name, lines), 3, words);
  };
  const Suite well = run("well", std::string(kOneLine) + "exit 0");
  EXPECT_EQ(well.exit_code(), ExitCode::kDone) << SuiteText(well);
  const Suite crash = run("crash", std::string(kOneLine) + "kill -SEGV $$");
  EXPECT_TRUE(Says(SuiteText(crash), "FAIL: 3 cases"));
  EXPECT_TRUE(
      Says(crash.failures().at(0).first.reason,
           "after an answer, the program crashed (Segmentation fault)"));
  const Suite end = run("end", "\"$mine\"; exit 3");
  const UnitStatistics& unit = end.units().begin()->second;
  EXPECT_EQ(unit.Count(Status::kFail), 1) << SuiteText(end);
  EXPECT_EQ(unit.Count(Status::kPass), 2);
  EXPECT_TRUE(Says(end.failures().at(0).first.reason,
                   "after an answer, the program ended with exit status 3"));
}

TEST(Program, OneThatEndsAfterAnAnswerLosesNoFile) {
  const std::string name =
      Around(kExample, "late", std::string(kOneLine) + "sleep 0.4; exit 0");
  const auto implementation = MakeImplementation(name);
  const std::vector<Case> cases =
      FirstCases(2, "op=lapsum rows=3 num_experts=5 impl=" + name);
  for (const Case& c : cases) {  // the second before the program ends
    implementation->Prepare(FindOperation("lapsum"), {c});
  }
  for (const Case& c : cases) {
    const CaseResult result = CheckCase(c, *implementation);
    EXPECT_FALSE(result.failed()) << result.reason;
  }
}

TEST(Program, EachCaseIsAskedOnce) {
  const fs::path lines = FreshFolder("lines") / "lines";
  CampaignOptions options;
  options.ops = {"add", "sum_of_squares", "lapsum"};
  options.impls = {Around("foreign/reference_program", "once",
                          "tee -a '" + lines.string() + "' | \"$mine\"")};
  options.cases = 64;
  options.max_size = 3;
  CallSeconds() = kMaxSeconds;
  const Suite suite = RunCampaign(options);
  CallSeconds() = 60;
  EXPECT_EQ(suite.cases(), 3 * 64) << SuiteText(suite);
  const std::string asked = ReadWholeFile(lines);
  EXPECT_EQ(std::ranges::count(asked, '\n'), 3);  // files of 64 cases
}

// A file takes cases up to and including the one that brings it above 64 MiB;
// the calls before odd cases count.
TEST(Program, AFileOfLargeCasesHasFewer) {
  const Variable declines("HOSTILE", "unsupported");
  const std::string name = Impl(kHostile);
  const auto implementation = MakeImplementation(name);
  const std::vector<Case> cases =  // 8 MB a call
      FirstCases(7, "op=sum_of_squares size=1000000 fill=exact impl=" + name);
  implementation->Prepare(FindOperation("sum_of_squares"), cases);
  EXPECT_TRUE(implementation->Holds(cases[5]));  // the eighth and ninth call
  EXPECT_FALSE(implementation->Holds(cases[6]));
}

// A file of many calls gets more time than two once the program has answered.
TEST(Program, AFileOfManySlowCallsIsNotLost) {
  const Variable pause("PAUSE", "40000");
  const std::string name = Impl("foreign/reference_program");
  const auto implementation = MakeImplementation(name);
  const Operation& op = FindOperation("lapsum");
  const std::vector<Case> cases =
      FirstCases(64, "op=lapsum rows=3 num_experts=5 impl=" + name);
  CallSeconds() = 1.8;  // the second file, of 95 calls, takes more than 3.8
  implementation->Prepare(op, {cases[0]});
  implementation->Prepare(op, cases);
  CallSeconds() = 60;
  EXPECT_TRUE(std::ranges::all_of(
      cases, [&](const Case& c) { return implementation->Holds(c); }));
}

TEST(Program, OneThatHangsIsReportedAfterOneTimeLimit) {
  const Variable hostile("HOSTILE", "hang");
  const std::string name = Impl(kHostile);
  const auto implementation = MakeImplementation(name);
  CallSeconds() = 0.5;
  ::testing::internal::CaptureStderr();
  implementation->Prepare(
      FindOperation("lapsum"),
      FirstCases(64, "op=lapsum rows=3 num_experts=5 impl=" + name));
  CallSeconds() = 60;
  EXPECT_TRUE(Says(::testing::internal::GetCapturedStderr(),
                   name + ": not done with 96 calls after 0.5 s; waiting for "
                          "at most 1 s (--timeout)",
                   "a file of 64 cases failed; running each case on its own: "
                   "the program was not done after 1 s (96 calls"));
}

TEST(Program, AnswersThatAreThereAreJudgedWhenTimeIsOver) {
  const Variable pause("PAUSE", "5000");
  CampaignOptions options;
  options.ops = {"add", "lapsum"};
  options.impls = {Impl("foreign/reference_program"), "reference_f32"};
  options.max_size = 3;
  options.seconds = 0.3;  // the first file takes more than 0.64
  const Suite suite = RunCampaign(options);
  EXPECT_EQ(suite.cases(), 64) << SuiteText(suite);
}

// The cases that it does not decline decide.
TEST(Program, CasesThatItDeclinesAreCounted) {
  const std::string impl = Impl("foreign/reference_program");
  int64_t above = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    above += ParseCase("op=lapsum case=" + std::to_string(i)).Size("rows") > 20;
  }
  for (const bool all : {false, true}) {
    const Variable at_most("AT_MOST", all ? "-1" : "20");
    const Suite suite = RunCases(impl, 12);
    const UnitStatistics& unit = suite.units().begin()->second;
    EXPECT_EQ(unit.Count(Status::kUnsupported), all ? 12 : above);
    EXPECT_EQ(unit.ran(), all ? 0 : 12 - above);
    EXPECT_EQ(suite.exit_code(),
              all ? ExitCode::kInconclusive : ExitCode::kDone);
    const std::string declined = "declined: " + std::to_string(above) +
                                 " of 12 cases of lapsum on " + impl +
                                 ": it says: at most 20 rows";
    EXPECT_TRUE(Says(SuiteText(suite), all ? "not run: lapsum on" : declined));
    EXPECT_TRUE(
        Says(SuiteJUnit(suite), all ? "<skipped" : "<system-out>" + declined));
  }
}

TEST(Program, AnOperationThatItDoesNotOfferIsReportedNotFailed) {
  const std::string name = Impl(kExample);
  const auto implementation = MakeImplementation(name);
  const CaseResult result =
      CheckCase(ParseCase("op=rmsnorm impl=" + name), *implementation);
  EXPECT_EQ(result.status, Status::kUnsupported);
  EXPECT_EQ(result.reason, "it says: only lapsum, not rmsnorm");
}

TEST(Program, WhateverItWritesEndsInAVerdictThatSaysSo) {
  const std::pair<const char*, const char*> kModes[] = {
      {"", "weights: "},  // zeros: judged, and wrong
      {"nan", "nan, expected"},
      {"missing", "output weights is missing"},
      {"misnamed",
       "'wieghts' is not an output of lapsum; did you mean 'weights'?"},
      {"misshapen", "weights has shape [4, 5], expected [3, 5]"},
      {"transposed", "weights has shape [5, 3], expected [3, 5]"},
      {"float64", "weights is float64, expected float32"},
      {"int32", "weights is int32, expected float32"},
      {"string", "weights is a string, expected float32"},
      {"group", "weights is not a dataset"},
      {"soft_link", "'weights' is a link to another place"},
      {"external_link", "'weights' is a link to another place"},
      {"external_data", "weights lies in other files"},
      {"huge", "weights has shape [2147483648, 1073741824], expected [3, 5]"},
      {"unanswered", "/cases/000001: is missing: the case was not answered"},
      {"no_cases", "it has no group '/cases'"},
      {"error", "the program reports an error: not on a Friday"},
      {"latin1", "reports an error: not on a f\xef\xbf\xbdte"},
      {"exit", "ended with exit status 3; its last words: I give up"},
      {"umlauts", "its last words: ...\xc3\xb6"},
      {"crash", "the program crashed (Segmentation fault)"},
      {"nothing", "the outputs file is missing"},
      {"garbage", "HDF5 cannot open it"},
      {"torn", "the outputs file is unusable"},
  };
  for (const auto& [mode, expected] : kModes) {
    const CaseResult result = CheckHostile(mode);
    EXPECT_EQ(result.status, Status::kFail) << mode;
    EXPECT_TRUE(Says(result.reason, expected)) << mode;
    EXPECT_EQ(result.reason, AsUtf8(result.reason)) << mode;
  }
  const CaseResult refused = CheckHostile("unsupported");
  EXPECT_EQ(refused.status, Status::kUnsupported);
  EXPECT_EQ(refused.reason, "it says: not on a Friday");
}

TEST(Program, WhatHangsOrChattersForEverIsEnded) {
  CallSeconds() = 0.5;
  for (const char* mode : {"hang", "chatter", "leaves_group"}) {
    // Whoever holds the other end of this pipe has ended once it is closed.
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const auto start = std::chrono::steady_clock::now();
    const CaseResult result = CheckHostile(mode);
    EXPECT_TRUE(result.failed());
    EXPECT_TRUE(Says(result.reason,
                     "was not done after 1 s (2 calls, --timeout) and was"));
    // It was ended, not waited for; the limit is generous, for a busy machine.
    EXPECT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(20));
    ::close(ends[1]);
    struct pollfd closed = {ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&closed, 1, 10'000), 1) << mode << " still runs";
    ::close(ends[0]);
  }
  CallSeconds() = 60;
}

// Every operation in every dtype: names, shapes, parameters, integers, bf16.
TEST(Program, AllOfEveryOperationGetsThrough) {
  const std::string name = Impl("foreign/reference_program");
  const auto implementation = MakeImplementation(name);
  for (const Operation* op : Operations()) {
    for (const Dtype dtype : op->dtypes()) {
      const std::vector<Case> cases =
          FirstCases(8, "op=" + op->name() + " dtype=" + DtypeName(dtype) +
                            " impl=" + name);
      implementation->Prepare(*op, cases);
      for (const Case& c : cases) {
        const CaseResult result = CheckCase(c, *implementation);
        EXPECT_FALSE(result.failed()) << CaseText(c) << "\n" << result.reason;
        EXPECT_TRUE(result.missing.empty()) << CaseText(c);
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Files for which libhdf5 itself would allocate memory without a limit.
TEST(Program, AChunkOfGigabytesDoesNotTakeThisProgramsMemory) {
  const CaseResult result = CheckHostile("huge_chunk");
  EXPECT_EQ(result.status, Status::kFail) << result.reason;
}
#endif

TEST(Program, AGrandchildThatHoldsThePipesDoesNotHoldUs) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(CheckHostile("leaves_a_child").failed());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Program, TheProtocolIsHeld) {
  CallSeconds() = 0.5;
  EXPECT_TRUE(Says(CheckHostile("silent").reason, "was not done"));
  EXPECT_TRUE(Says(CheckHostile("other_words").reason,
                   "its last words: Done, I think"));
  CallSeconds() = 60;
  EXPECT_TRUE(Says(CheckHostile("left_open").reason, "is it still open?"));
  // Only a whole line is the answer, not the end of one that is cut.
  EXPECT_TRUE(Says(CheckHostile("progress").reason, "weights: "));
  // The program answers and ends; the next file starts another.
  EXPECT_TRUE(Says(CheckHostile("leaves").reason, "weights: "));
}

TEST(Program, APlantedFaultInFrontOfAProgramIsFoundToo) {
  const Suite result = RunCases("faulty:sign:d_scores:" + Impl(kExample), 1,
                                "rows=2 num_experts=5 fill=generic");
  ASSERT_FALSE(result.failures().empty());
  EXPECT_EQ(result.failures()[0].smallest.hints.at(0),
            "got/expected is -1 = -1: the sign is flipped");
}

void ExpectRefused(const std::string& name, ExitCode code,
                   const std::string& part) {
  EXPECT_TRUE(Says(MessageOf(code, [&] { MakeImplementation(name); }), part))
      << name;
}

TEST(Program, RefusesWhatIsNoProgram) {
  const fs::path folder = FreshFolder("no_program");
  ExpectRefused("exec:./mine", ExitCode::kUsage,
                "use serve:PATH (property_tests/verify/foreign/README.md), or "
                "export-vectors");
  ExpectRefused("serve:", ExitCode::kUsage, "needs a path");
  ExpectRefused("serve:a b", ExitCode::kUsage, "make a link");
  ExpectRefused("serve:a#b", ExitCode::kUsage, "make a link");
  ExpectRefused("serve:" + folder.string(), ExitCode::kUsage, "is not a file");
  ExpectRefused("serve:" + (folder / "none").string(), ExitCode::kEnvironment,
                "there is no file");
  const fs::path plain = folder / "plain";
  std::ofstream(plain) << "print('no interpreter named')\n";
  ExpectRefused("serve:" + plain.string(), ExitCode::kUsage, "chmod +x");
  fs::permissions(plain, fs::perms::owner_all);
  const std::string name = "serve:" + plain.string();
  const auto implementation = MakeImplementation(name);
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     CheckCase(ParseCase("op=lapsum impl=" + name),
                               *implementation);
                   }),
                   "names its interpreter"));
}

}  // namespace
}  // namespace softmoe::verify
