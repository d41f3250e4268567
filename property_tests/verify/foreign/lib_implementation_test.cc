// SPDX-License-Identifier: Apache-2.0
//
// Other people's libraries, as lib:. Correct ones pass, planted faults are
// found, and any other misbehavior fails its case, not this process.

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
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

std::string Lib(const std::string& name) {
  return "lib:" +
         fs::absolute(RunfilePath("property_tests/verify/" + name)).string();
}
std::string Example() { return Lib("examples/soft_topk_library.so"); }
std::string Hostile() { return Lib("foreign/hostile_library.so"); }

Suite RunCases(const std::string& impl, int64_t cases) {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {impl};
  options.cases = cases;
  return RunCampaign(options);
}

CaseResult CheckHostile(const std::string& mode) {
  ::setenv("HOSTILE", mode.c_str(), 1);
  const auto implementation = MakeImplementation(Hostile());
  const CaseResult result =
      CheckCase(ParseCase("op=lapsum rows=3 num_experts=5 impl=" + Hostile()),
                *implementation);
  ::unsetenv("HOSTILE");
  return result;
}

TEST(Lib, TheCorrectExamplePasses) {
  const Suite result = RunCases(Example(), 100);
  EXPECT_EQ(result.exit_code(), ExitCode::kDone) << SuiteText(result);
  EXPECT_EQ(result.cases(), 100);
}

TEST(Lib, PlantedBugsAreFoundShrunkAndNamed) {
  const std::pair<const char*, const char*> kBugs[] = {
      {"temperature", "= temperature"},
      {"unrolled", "all NaN: never written"},
  };
  for (const auto& [bug, hint] : kBugs) {
    ::setenv("SOFT_TOPK_BUG", bug, 1);
    const Suite result = RunCases(Example(), 20);
    ASSERT_FALSE(result.failures().empty()) << bug;
    const CaseResult& smallest = result.failures()[0].smallest;
    EXPECT_EQ(smallest.c.Size("rows"), 1) << bug;
    EXPECT_LE(smallest.c.Size("num_experts"), 3) << bug;
    ASSERT_FALSE(smallest.hints.empty()) << bug;
    EXPECT_TRUE(Says(smallest.hints[0], hint)) << bug;
    const Case again = ParseCase(StripRepro(ReproLine(smallest)));
    EXPECT_EQ(again, smallest.c);
    EXPECT_TRUE(CheckCase(again, *MakeImplementation(again.impl)).failed());
    ::unsetenv("SOFT_TOPK_BUG");
  }
}

TEST(Lib, ACrashFailsItsCasesAndTheNextOnesRun) {
  ::setenv("SOFT_TOPK_BUG", "crash", 1);  // above 20 rows
  const Suite result = RunCases(Example(), 12);
  ::unsetenv("SOFT_TOPK_BUG");
  const UnitStatistics& unit = result.units().begin()->second;
  EXPECT_GT(unit.Count(Status::kFail), 0);
  EXPECT_GT(unit.Count(Status::kPass), 0);
  EXPECT_EQ(unit.ran(), 12);
  const CaseResult& smallest = result.failures().at(0).smallest;
  EXPECT_EQ(smallest.c.Size("rows"), 21);
  EXPECT_EQ(smallest.reason, "the library crashed (Aborted)");
}

TEST(Lib, WhateverItDoesEndsInAVerdictThatSaysSo) {
  const std::pair<const char*, const char*> kModes[] = {
      {"", "weights: "},  // zeros: judged, and wrong
      {"unwritten", "got nan, expected"},
      {"leave_all_out", "output weights is missing"},
      {"past_end", "weights: written 1 past the end"},
      {"before", "weights: written 1 before the beginning"},
      {"input", "was changed by the library"},
      {"pointer", "the library moved the pointer"},
      {"error", "reports an error, status 77: not on a Friday"},
      {"latin1", "status 77: not on a f\xef\xbf\xbdte"},
      {"unterminated", "status 1: xxxx"},
      {"throw", "let an exception escape: not caught"},
      {"crash", "the library crashed (Segmentation fault)"},
      {"exit", "ended its process with exit status 0"},
      {"close", "the library "},
      {"supports_crashes",
       "asked whether it has this operation, the library crashed (Aborted)"},
  };
  for (const auto& [mode, expected] : kModes) {
    const CaseResult result = CheckHostile(mode);
    EXPECT_EQ(result.status, Status::kFail) << mode;
    EXPECT_TRUE(Says(result.reason, expected)) << mode;
  }
  EXPECT_EQ(CheckHostile("unsupported").status, Status::kUnsupported);
  CallSeconds() = 0.3;
  for (const char* mode : {"hang", "leaves_group"}) {
    EXPECT_EQ(CheckHostile(mode).reason,
              "the library was not done after 0.3 s (--timeout) and was ended")
        << mode;
  }
  CallSeconds() = 60;
}

// Whoever holds the other end of this pipe has ended once it is closed. The
// library's child holds the connection, too, but the crash is no time-out.
TEST(Lib, WhatItStartedEndsWithItsCrash) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(CheckHostile("crash_with_child").reason,
            "the library crashed (Aborted)");
  ::close(ends[1]);
  struct pollfd closed = {ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 10'000), 1);
  EXPECT_TRUE(closed.revents & POLLHUP);
  ::close(ends[0]);
}

// A message larger than the socket buffer waits for its reader.
TEST(Lib, ACallThatItDoesNotReadIsEnded) {
  ::setenv("HOSTILE", "stops", 1);
  CallSeconds() = 0.5;
  const auto implementation = MakeImplementation(Hostile());
  const Case c =
      ParseCase("op=lapsum rows=1000 num_experts=256 case=1 impl=" + Hostile());
  bool ended = false;
  for (int i = 0; i < 4; ++i) {
    const CaseResult result = CheckCase(c, *implementation);
    EXPECT_EQ(result.status, Status::kFail);
    ended |= result.reason.ends_with("0.5 s (--timeout) and was ended");
  }
  EXPECT_TRUE(ended);
  CallSeconds() = 60;
  ::unsetenv("HOSTILE");
}

TEST(Lib, AStopEndsACallAndIsNoFailure) {
  ::setenv("HOSTILE", "hang", 1);
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {Hostile()};
  options.cases = 5;
  const StopSignal signal;
  std::thread later;  // begins when the library is loaded
  options.stop = [&] {
    if (later.joinable()) return signal.requested();
    later = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(::getpid(), SIGTERM);
    });
    return false;
  };
  const Suite result = RunCampaign(options);
  later.join();
  ::unsetenv("HOSTILE");
  EXPECT_TRUE(result.stopped());
  EXPECT_TRUE(result.failures().empty());
  // Every report says that it was stopped, and names the case that hung.
  const std::string line =
      ReproLine(ParseCase("op=lapsum impl=" + Hostile()), "run", "not judged");
  const std::string why = "a call of " + Hostile().substr(4) + " was given up";
  EXPECT_TRUE(Says(SuiteText(result), "STOPPED: 0 cases", why, "  " + line));
  const nlohmann::ordered_json json = SuiteJson(result);
  EXPECT_EQ(json["exit_code"], 75);
  EXPECT_EQ(json["verdict"], "STOPPED");
  EXPECT_EQ(json["stopped"], true);
  EXPECT_EQ(json["in_flight"], line);
  EXPECT_TRUE(Says(SuiteJUnit(result), "errors=\"1\"",
                   "<error type=\"STOPPED\"", why, "REPRO v"));
}

// The harness reads and writes in its own floating-point mode, and the library
// computes in the mode that it set when it was loaded.
TEST(Lib, OneThatFlushesSubnormalNumbersDoesNotMakeUsFlushThem) {
  ::setenv("HOSTILE", "flush", 1);
  const auto implementation = MakeImplementation(Hostile());
  const Case c = ParseCase("op=lapsum fill=generic rows=1 num_experts=2 impl=" +
                           Hostile());
  const Operation& op = FindOperation("lapsum");
  TensorMap inputs = InputsOf(op, c);
  double& first = inputs.begin()->second.values.at(0);
  first = 0x1p-149;
  for (int call = 0; call < 2; ++call) {
    const TensorMap outputs = implementation->Run(op, c, inputs, 0);
    EXPECT_EQ(outputs.at("weights").values.at(0), first);
  }
  ::unsetenv("HOSTILE");
}

TEST(Lib, IsToldOperationCaseAndParameters) {
  ::setenv("HOSTILE", "repeat", 1);
  const Case c = ParseCase(
      "op=router kind=sparse rows=3 temperature=1.75 impl=" + Hostile());
  const CaseResult result = CheckCase(c, *MakeImplementation(Hostile()));
  ::unsetenv("HOSTILE");
  EXPECT_TRUE(Says(result.reason, "router|op=router impl=", "|rows:3|",
                   "|temperature:1.75", "|kind:sparse"));
}

TEST(Lib, AnOperationThatItDoesNotOfferIsReportedNotFailed) {
  const auto implementation = MakeImplementation(Example());
  const CaseResult result =
      CheckCase(ParseCase("op=rmsnorm impl=" + Example()), *implementation);
  EXPECT_EQ(result.status, Status::kUnsupported);
  EXPECT_EQ(result.reason, "the library does not offer it in f32");
}

void ExpectRefused(const std::string& name, ExitCode code,
                   const std::string& part) {
  EXPECT_TRUE(Says(MessageOf(code, [&] { MakeImplementation(name); }), part))
      << name;
}

TEST(Lib, RefusesWhatIsNoSuchLibrary) {
  const fs::path folder = FreshFolder("no_library");
  ExpectRefused("lib:", ExitCode::kUsage, "needs a path");
  ExpectRefused("lib:" + (folder / "none.so").string(), ExitCode::kEnvironment,
                "there is no file");
  std::ofstream(folder / "text.so") << "text";
  ExpectRefused("lib:" + (folder / "text.so").string(), ExitCode::kUsage,
                "cannot be loaded");
  ExpectRefused(Lib("foreign/library_without_functions.so"), ExitCode::kUsage,
                "does not export softmoe_verify_abi_version");
  ExpectRefused(Lib("foreign/library_of_another_version.so"), ExitCode::kUsage,
                "of ABI version 2, this program calls version 1");
  ::setenv("HOSTILE", "crash_on_load", 1);
  ExpectRefused(Hostile(), ExitCode::kUsage,
                "while it was loaded, the library crashed");
  ::unsetenv("HOSTILE");
}

}  // namespace
}  // namespace softmoe::verify
