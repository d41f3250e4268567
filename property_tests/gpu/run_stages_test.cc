// SPDX-License-Identifier: Apache-2.0
//
// Uses shell scripts as stages: what happens if they fail, crash, hang or write
// nonsense.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/json_lines.h"
#include "core/process/stop_signal.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/gpu_runs/gpu_record.h"
#include "property_tests/gpu/stage_list.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;

Stage Script(const std::string& name, const std::string& text,
             double seconds = 60) {
  return {.name = name, .seconds = seconds, .command = {"sh", "-c", text}};
}
Stage Facts() { return Script(kFactsStage, "exit 0"); }

class RunStagesTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.record = FreshFolder("run_stages") / "record.jsonl";
  }
  // The last line of each stage and of the record.
  std::map<std::string, Line> Ends() const {
    std::map<std::string, Line> ends;
    for (const Line& line : ReadJsonLines(options_.record)) {
      if (line["kind"] == "stage") ends[line["name"]] = line;
      if (line["kind"] == "end") ends["end"] = line;
    }
    return ends;
  }

  RunOptions options_;
};

TEST_F(RunStagesTest, NothingStopsTheOthers) {
  const ExitCode code = RunStages(
      {Facts(),
       Script("says no", "echo text; echo why >&2; exit 1"),
       {.name = "may say 7",
        .seconds = 60,
        .command = {"sh", "-c", "exit 7"},
        .also_passes = 7},
       Script("may not", "exit 7"),
       Script("crashes", "kill -SEGV $$"),
       Script("hangs", "sleep 600", 0.3),
       Script("leaves a child", "sleep 600 & echo left", 0.3),
       Script("lies", "echo '{\"kind\":\"dream\"}'"),
       Script("says nothing", "echo '{}'"),
       {.name = "is not there", .seconds = 60, .why_not = "no such tool"},
       Script("is fine", "exit 0")},
      options_);
  EXPECT_EQ(code, ExitCode::kFailed);
  auto ends = Ends();
  EXPECT_EQ(ends["says no"]["outcome"], "failed");
  EXPECT_TRUE(Says(ends["says no"]["text"].get<std::string>(), "why", "text"));
  EXPECT_EQ(ends["may say 7"]["outcome"], "passed");
  EXPECT_EQ(ends["may not"]["outcome"], "failed");
  EXPECT_EQ(ends["crashes"]["outcome"], "crashed");
  EXPECT_EQ(ends["hangs"]["outcome"], "ran too long");
  EXPECT_EQ(ends["leaves a child"]["outcome"], "ran too long");
  EXPECT_EQ(ends["lies"]["outcome"], "failed");
  EXPECT_TRUE(Says(ends["lies"]["text"].get<std::string>(), "dream"));
  EXPECT_EQ(ends["says nothing"]["outcome"], "failed");
  EXPECT_EQ(ends["is not there"]["outcome"], "not run");
  EXPECT_EQ(ends["is not there"]["text"], "no such tool");
  EXPECT_EQ(ends["is fine"]["outcome"], "passed");
  EXPECT_EQ(ends["end"]["passed"], false);
  EXPECT_EQ(
      ends["end"]["failed"],
      "stage \"says no\" (failed); stage \"may not\" (failed); stage "
      "\"crashes\" (crashed); stage "
      "\"hangs\" (ran too long); stage \"leaves a child\" (ran too long); "
      "stage \"lies\" (failed); stage \"says nothing\" (failed)");
}

// A stage that cannot begin is a failure like any other.
TEST_F(RunStagesTest, NorDoesWhatCannotBegin) {
  const fs::path folder = options_.record.parent_path();
  Stage full = Script("full", "exit 0");
  full.report = folder / "full";
  fs::create_directories(full.report / "folder");
  Stage shared = Script("shared", "exit 0");
  shared.folder = folder / "gone";
  shared.shares_device = true;
  const ExitCode code = RunStages(
      {Facts(),
       {.name = "no program", .seconds = 60, .command = {"/dev/null"}},
       full,
       shared,
       Script("is fine", "exit 0")},
      options_);
  EXPECT_EQ(code, ExitCode::kFailed);
  auto ends = Ends();
  EXPECT_TRUE(Says(ends["no program"]["text"].get<std::string>(),
                   "cannot start '/dev/null'"));
  EXPECT_TRUE(Says(ends["shared"]["text"].get<std::string>(), "gone"));
  EXPECT_EQ(ends["is fine"]["outcome"], "passed");
  EXPECT_EQ(ends["end"]["failed"],
            "stage \"no program\" (failed); stage \"full\" (failed); stage "
            "\"shared\" (failed)");
}

// Nobody reads what is printed, but the record is complete.
TEST_F(RunStagesTest, NorDoesOutputThatCannotBeWritten) {
  Stage shared = Script("shared", "echo wrong >&2; exit 1");
  shared.shares_device = true;
  std::fflush(stdout);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  dup2(full, STDOUT_FILENO);
  dup2(full, STDERR_FILENO);
  ExitCode code = ExitCode::kDone;
  EXPECT_NO_THROW(
      code = RunStages({Facts(), shared, Script("no", "exit 1")}, options_));
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const int file : {full, out, err}) close(file);
  std::clearerr(stdout);
  std::clearerr(stderr);
  EXPECT_EQ(code, ExitCode::kFailed);
  auto ends = Ends();
  EXPECT_EQ(ends["shared"]["outcome"], "failed");
  EXPECT_EQ(ends["end"]["failed"],
            "stage \"shared\" (failed); stage \"no\" (failed)");
}

// A pager reads no further, and the pipe to it is full once the first stage has
// been named.
TEST_F(RunStagesTest, AStopEndsTheRecordThoughNobodyReads) {
  std::fflush(stdout);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const int size = fcntl(ends[1], F_SETPIPE_SZ, 4096);
  const std::string text(static_cast<size_t>(size) - 20, ' ');
  ASSERT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
  const int out = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  {
    const StopSignal stop;  // if the signal comes before theirs, or after
    const std::jthread user([this] {
      for (int i = 0; i < 10'000 && !fs::exists(options_.record); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      kill(getpid(), SIGTERM);
    });
    EXPECT_THROW(
        RunStages({Facts(), Script("longer than the pipe has room", "exit 0")},
                  options_),
        StoppedError);
  }
  dup2(out, STDOUT_FILENO);
  for (const int file : {ends[0], ends[1], out}) close(file);
  auto stages = Ends();
  EXPECT_EQ(stages[kFactsStage]["outcome"], "passed");
  EXPECT_EQ(stages["longer than the pipe has room"]["outcome"], "stopped");
  EXPECT_EQ(stages["end"]["passed"], false);
}

// The pipe to whoever reads stderr is full for longer than the stage may take.
TEST_F(RunStagesTest, TheTimeOfAReaderIsNotThatOfAStage) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string text(
      static_cast<size_t>(fcntl(ends[1], F_SETPIPE_SZ, 4096)), ' ');
  ASSERT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
  const int err = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  ExitCode code = ExitCode::kFailed;
  {
    const std::jthread reader([&ends] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      std::string some(1000, ' ');
      while (read(ends[0], some.data(), some.size()) > 0) continue;
    });
    code = RunStages({Facts(), Script("asks", "echo text >&2", 2)}, options_);
    dup2(err, STDERR_FILENO);
    for (const int file : {ends[1], err}) close(file);
  }
  close(ends[0]);
  EXPECT_EQ(code, ExitCode::kDone);
  EXPECT_EQ(Ends()["asks"]["outcome"], "passed");
}

// Lines written before a crash are in the record, and their failures are named.
TEST_F(RunStagesTest, LinesAreWrittenAtOnce) {
  const std::string line =
      R"({"kind":"check","name":"bits","passed":false,"utilisation":0.5,)"
      R"("text":"other bits"})";
  const ExitCode code = RunStages(
      {Facts(), Script("model", "echo '" + line + "'; kill -KILL $$")},
      options_);
  EXPECT_EQ(code, ExitCode::kFailed);
  const auto lines = ReadJsonLines(options_.record);
  ASSERT_EQ(lines.size(), 5u);  // run, facts, check, model, end
  EXPECT_EQ(lines[2]["text"], "other bits");
  EXPECT_EQ(lines[3]["outcome"], "crashed");
  EXPECT_EQ(lines[4]["failed"], "check \"bits\"");
}

// Stages that time nothing run side by side and are recorded in their order:
// here the first one waits for the second.
TEST_F(RunStagesTest, SomeStagesShareTheDevice) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  const fs::path folder = options_.record.parent_path();
  const auto shares = [&](const std::string& name, const std::string& text) {
    Stage stage = Script(name, text);
    stage.folder = folder;
    stage.shares_device = true;
    return stage;
  };
  const ExitCode code = RunStages(
      {Facts(), shares("first", "while [ ! -e second ]; do sleep 0.01; done"),
       shares("second", "echo >second; echo wrong >&2; exit 1"),
       Script("alone", "exit 0")},
      options_);
  EXPECT_EQ(code, ExitCode::kFailed);
  std::string names;
  for (const Line& line : ReadJsonLines(options_.record)) {
    if (line["kind"] == "stage") names += line["name"].get<std::string>() + " ";
  }
  EXPECT_EQ(names, "facts first second alone ");
  auto ends = Ends();
  EXPECT_EQ(ends["first"]["outcome"], "passed");
  EXPECT_EQ(ends["second"]["text"], "wrong\n");
}

// A program that leaves a report, in place of printing lines.
TEST_F(RunStagesTest, ReportsBecomeLines) {
  const auto leaves = [&](const std::string& name, const std::string& text) {
    Stage stage = Script(name, text);
    stage.folder = options_.record.parent_path();
    stage.report = stage.folder / "report.json";
    stage.told = 0.5;
    stage.whole = [](const Line& report) { return !report.contains("half"); };
    stage.lines_of = [name](const Line& report) {
      return std::vector<Line>{{{"kind", "check"},
                                {"name", name},
                                {"passed", report.at("fine")},
                                {"utilisation", 0},
                                {"text", report.at("given")}}};
    };
    return stage;
  };
  const ExitCode code = RunStages(
      {Facts(),
       leaves("fine",
              R"(echo "{\"fine\":true,\"given\":\"$0=$1\"}" >report.json)"),
       leaves("not fine",
              R"(echo '{"fine":false,"given":""}' >report.json; exit 1)"),
       leaves("half", R"(echo '{"half":1}' >report.json)"),
       leaves("wrong half",
              R"(echo '{"half":1,"fine":false,"given":""}' >report.json;)"
              " exit 1"),
       leaves("none", "exit 0"), leaves("a folder", "mkdir report.json"),
       leaves("no JSON", "echo '{' >report.json"),
       leaves("other JSON", "echo '{}' >report.json")},
      options_);
  EXPECT_EQ(code, ExitCode::kFailed);
  auto ends = Ends();
  EXPECT_EQ(ends["fine"]["outcome"], "passed");
  EXPECT_EQ(ends["not fine"]["outcome"], "failed");
  EXPECT_EQ(ends["half"]["outcome"], "ran too long");
  EXPECT_TRUE(Says(ends["half"]["text"].get<std::string>(), "before it had"));
  EXPECT_EQ(ends["none"]["outcome"], "failed");
  EXPECT_TRUE(Says(ends["none"]["text"].get<std::string>(), "left no report"));
  EXPECT_EQ(ends["a folder"]["outcome"], "failed");
  EXPECT_EQ(ends["no JSON"]["outcome"], "failed");
  EXPECT_EQ(ends["other JSON"]["outcome"], "failed");
  EXPECT_TRUE(Says(ends["other JSON"]["text"].get<std::string>(), "'fine'"));
  EXPECT_EQ(ends["end"]["failed"],
            "check \"not fine\"; stage \"half\" (ran too long); check \"wrong "
            "half\"; stage \"none\" (failed); stage \"a folder\" (failed); "
            "stage \"no JSON\" (failed); stage \"other JSON\" (failed)");
  EXPECT_FALSE(fs::exists(options_.record.parent_path() / "report.json"));
  // The program is told how long it may take.
  EXPECT_EQ(ReadJsonLines(options_.record)[2]["text"], "--seconds=30.000000");
}

TEST_F(RunStagesTest, NoReportOutlivesItsStage) {
  const fs::path folder = options_.record.parent_path();
  const auto leaves = [&](const std::string& name, const std::string& then,
                          double seconds = 60) {
    // Whole, and in the file under whose name it would be complete.
    Stage stage = Script(
        name, "echo '{' >" + name + "; echo >." + name + ".$$.1.tmp; " + then,
        seconds);
    stage.folder = folder;
    stage.report = folder / name;
    return stage;
  };
  const Stage lies = leaves("lies", "echo '{}'");
  EXPECT_EQ(RunStages({Facts(), leaves("hangs", "sleep 600", 0.3), lies,
                       leaves("crashes", "kill -SEGV $$")},
                      options_),
            ExitCode::kFailed);
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{"record.jsonl"});
}

// If a stage may be too large for the device, its program says so; no other bad
// end counts as that.
TEST_F(RunStagesTest, WhatDoesNotFitIsNotRun) {
  const fs::path folder = options_.record.parent_path();
  const auto ends_with = [&](const std::string& name, int status,
                             bool may_not_fit) {
    // `bench` has begun its report by then.
    Stage stage = Script(name,
                         "echo '{' >report.json; echo 9 GB more >&2; "
                         "exit " +
                             std::to_string(status));
    stage.folder = folder;
    stage.report = folder / "report.json";
    stage.may_not_fit = may_not_fit;
    return stage;
  };
  EXPECT_EQ(RunStages({Facts(), ends_with("step", 5, true)}, options_),
            ExitCode::kDone);
  auto ends = Ends();
  EXPECT_EQ(ends["step"]["outcome"], "not run");
  EXPECT_EQ(ends["step"]["text"], "9 GB more\n");
  EXPECT_EQ(ends["end"]["passed"], true);
  EXPECT_FALSE(fs::exists(folder / "report.json"));

  fs::remove(options_.record);
  EXPECT_EQ(RunStages({Facts(), ends_with("operation", 5, false),
                       ends_with("wrong step", 1, true)},
                      options_),
            ExitCode::kFailed);
  ends = Ends();
  EXPECT_EQ(ends["operation"]["outcome"], "failed");
  EXPECT_EQ(ends["wrong step"]["outcome"], "failed");
}

// A stage that `minutes` cut short has not failed.
TEST_F(RunStagesTest, WhatHadLessThanItsTimeIsNotRun) {
  options_.minutes = 0.15;
  Stage part = Script("part", "echo '{}' >report.json; exit 4");
  part.folder = options_.record.parent_path();
  part.report = part.folder / "report.json";
  part.whole = [](const Line&) { return false; };
  EXPECT_EQ(RunStages({Facts(), part, Script("cut", "echo half >&2; sleep 600"),
                       Script("late", "exit 0")},
                      options_),
            ExitCode::kInconclusive);
  auto ends = Ends();
  for (const char* name : {"part", "cut", "late"}) {
    EXPECT_EQ(ends[name]["outcome"], "not run") << name;
    EXPECT_TRUE(Says(ends[name]["text"].get<std::string>(), "no time was left"))
        << name;
  }
  EXPECT_TRUE(Says(ends["cut"]["text"].get<std::string>(), "half"));
  EXPECT_EQ(ends["end"]["passed"], false);
  EXPECT_EQ(ends["end"]["failed"], "");
}

// A part that passes counts, but is not all that was asked.
TEST_F(RunStagesTest, APartThatCountsIsInconclusive) {
  const auto part = [&](int status) {
    Stage stage = Script(
        "part", "echo '{}' >report.json; exit " + std::to_string(status));
    stage.folder = options_.record.parent_path();
    stage.report = stage.folder / "report.json";
    stage.whole = [](const Line&) { return false; };
    stage.part_counts = true;
    stage.lines_of = [](const Line&) {
      return std::vector<Line>{{{"kind", "check"},
                                {"name", "some"},
                                {"passed", true},
                                {"utilisation", 0},
                                {"text", ""}}};
    };
    return stage;
  };
  EXPECT_EQ(RunStages({Facts(), part(0)}, options_), ExitCode::kInconclusive);
  auto ends = Ends();
  EXPECT_EQ(ends["part"]["outcome"], "passed");
  EXPECT_TRUE(
      Says(ends["part"]["text"].get<std::string>(), "no time was left"));
  EXPECT_EQ(ends["end"]["passed"], false);
  EXPECT_EQ(ends["end"]["failed"], "");
  EXPECT_EQ(ReadJsonLines(options_.record)[2]["name"], "some");
  // A part counts only if it passes.
  fs::remove(options_.record);
  EXPECT_EQ(RunStages({Facts(), part(7)}, options_), ExitCode::kFailed);
  EXPECT_EQ(Ends()["part"]["outcome"], "ran too long");
}

TEST_F(RunStagesTest, ResultsOfAnEarlierRunAreRemoved) {
  Stage stage = Script("grid", "test ! -e results");
  stage.folder = options_.record.parent_path();
  stage.results = stage.folder / "results";
  fs::create_directories(stage.results / "row");
  Stage other = stage;
  other.name = "not here";
  other.why_not = "no such program";
  EXPECT_EQ(RunStages({Facts(), other}, options_), ExitCode::kDone);
  EXPECT_TRUE(fs::exists(stage.results));
  fs::remove(options_.record);
  EXPECT_EQ(RunStages({Facts(), stage}, options_), ExitCode::kDone);
}

TEST_F(RunStagesTest, SharesAreOfWhatTheCeilingsAllow) {
  const auto echo = [](const std::string& line) {
    return "echo '" + line + "';";
  };
  const auto ceiling = [&](const std::string& name, const std::string& value) {
    return echo(R"({"kind":"ceiling","name":")" + name +
                R"(","shape":"","unit":"","value":)" + value + "}");
  };
  const auto time = [&](const std::string& flops, const std::string& bytes) {
    return echo(R"({"kind":"time","name":"x","operation":"x",)"
                R"("precision":"bf16","shape":"","flops":)" +
                flops + R"(,"bytes":)" + bytes + R"(,"seconds":0.5})");
  };
  (void)RunStages(
      {Facts(),
       Script("ceilings", time("1e12", "0") + ceiling("copy", "1000") +
                              ceiling("product bf16", "400") +
                              ceiling("product fp32", "1")),
       Script("times", time("1e14", "1e9") + time("1e12", "2.5e11"))},
      options_);
  std::vector<Line> times;
  for (const Line& line : ReadJsonLines(options_.record)) {
    if (line["kind"] == "time") times.push_back(line);
  }
  ASSERT_EQ(times.size(), 3u);
  EXPECT_FALSE(times[0].contains("share"));         // no ceiling was known yet
  EXPECT_DOUBLE_EQ(times[1]["share"], 0.5);         // 0.25 s of products in 0.5
  EXPECT_DOUBLE_EQ(times[2]["share"], 0.25 / 0.5);  // 0.25 s of copying
}

TEST_F(RunStagesTest, WithoutADeviceThereIsNoRecord) {
  EXPECT_THROW(
      (void)RunStages({Script(kFactsStage, "exit 5"), Script("more", "exit 0")},
                      options_),
      EnvironmentError);
  EXPECT_FALSE(fs::exists(options_.record));
}

TEST_F(RunStagesTest, WithADeviceThatDoesNotAnswerThereIsNone) {
  for (const auto& [facts, outcome] :
       {std::pair(Script(kFactsStage, "sleep 600", 0.3), "ran too long"),
        std::pair(Script(kFactsStage, "kill -SEGV $$"), "crashed"),
        std::pair(Script(kFactsStage, "exit 1"), "failed")}) {
    const std::vector<Stage> stages = {facts, Script("more", "exit 0")};
    EXPECT_TRUE(Says(
        MessageOf<EnvironmentError>([&] { (void)RunStages(stages, options_); }),
        outcome, "does not answer", "nvidia-smi"));
    EXPECT_FALSE(fs::exists(options_.record)) << outcome;
  }
}

}  // namespace
}  // namespace softmoe::gpu
