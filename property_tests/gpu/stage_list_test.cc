// SPDX-License-Identifier: Apache-2.0
//
// Runs stages in this process on the simulated device, without a record.
#include "property_tests/gpu/stage_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"
#include "property_tests/gpu/stage_bodies.h"
#include "property_tests/gpu/time_stages.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::gpu {
namespace {

// What a stage reported, and whether it passed.
struct Told {
  bool passed = false;
  std::vector<Line> lines;
};
Told RunStage(const std::string& stage, bool planted_nccl = false) {
  Told told;
  StageContext context;
  context.planted_nccl = planted_nccl;
  context.tell = [&](const Line& line) { told.lines.push_back(line); };
  told.passed = RunBody(stage, context);
  return told;
}

// The stage with this name; `planted` is to be wrong.
Stage StageOf(const std::string& name, const std::string& planted = "") {
  StageOptions options;
  options.planted = planted;
  options.report = "report.json";
  for (const Stage& stage : Stages(options)) {
    if (stage.name == name) return stage;
  }
  throw InternalError("there is no stage " + name);
}

bool HasWord(const Stage& stage, const std::string& word) {
  return std::ranges::count(stage.command, word) == 1;
}

// What `verify run` reports for one operation.
Line Report(const std::string& verdict) {
  Line report = {
      {"verdict", verdict},
      {"units",
       {{{"ran", 20},
         {"cases", {{"PASS", 20}}},
         {"unsupported", ""},
         {"outputs",
          {{"a", {{"utilisation", 0.25}, {"derivation", "a/1"}}},
           {"b", {{"utilisation", 0.5}, {"derivation", "b/1"}}},
           {"c", {{"utilisation", 0.125}, {"derivation", "c/1"}}}}}}}},
      {"failures", Line::array()},
      {"mistrusted", Line::array()}};
  return report;
}
Line OperationLineOf(const Line& report) {
  const std::vector<Line> lines =
      StageOf("operation cast bf16").lines_of(report);
  EXPECT_EQ(lines.size(), 1u);
  return lines.at(0);
}

TEST(OperationStage, RunsVerify) {
  const Stage stage = StageOf("operation cast bf16");
  EXPECT_TRUE(stage.command[0].ends_with("/verify")) << stage.command[0];
  for (const char* word : {"run", "op=cast", "impl=shim:bf16", "--json",
                           "report.json.cast.bf16"}) {
    EXPECT_TRUE(HasWord(stage, word)) << word;
  }
  EXPECT_TRUE(HasWord(StageOf("operation add fp32"), "impl=shim"));
  const Stage wrong = StageOf("operation rmsnorm fp32", "rmsnorm");
  EXPECT_TRUE(HasWord(wrong, "impl=faulty:twice:y:shim"));
  EXPECT_TRUE(HasWord(StageOf("operation add fp32", "rmsnorm"), "impl=shim"));
}

TEST(OperationStage, RecordsWhatVerifyFinds) {
  const Line line = OperationLineOf(Report("PASS"));
  EXPECT_EQ(line["name"], "cast");
  EXPECT_EQ(line["precision"], "bf16");
  EXPECT_EQ(line["passed"], true);
  EXPECT_EQ(line["cases"], 20);
  EXPECT_EQ(line["failures"], 0);
  EXPECT_EQ(line["utilisation"], 0.5);
  EXPECT_EQ(line["bound"], "b/1");
  EXPECT_EQ(line["text"], "");
  const std::string sources =
      ReadWholeFile(RunfilePath("bazel/operation_sources.txt"));
  EXPECT_TRUE(
      Says(sources, "\ncast " + line["sources"].get<std::string>() + "\n"))
      << line.dump();
}

TEST(OperationStage, RecordsWhatVerifyRefuses) {
  Line report = Report("FAIL");
  report["units"][0]["cases"]["FAIL"] = 3;
  report["units"][0]["outputs"]["c"]["utilisation"] = nullptr;  // infinite
  report["failures"] = {{{"text", "first"}}, {{"text", "second"}}};
  Line line = OperationLineOf(report);
  EXPECT_EQ(line["passed"], false);
  EXPECT_EQ(line["failures"], 3);
  EXPECT_EQ(line["utilisation"], INFINITY);
  EXPECT_EQ(line["bound"], "c/1");
  EXPECT_EQ(line["text"], "first");

  report = Report("MISTRUSTED");
  report["mistrusted"] = {"b cannot tell"};
  line = OperationLineOf(report);
  EXPECT_EQ(line["passed"], false);
  EXPECT_EQ(line["text"], "MISTRUSTED: b cannot tell\n");

  report = Report("INCONCLUSIVE");
  report["units"][0]["ran"] = 0;
  report["units"][0]["unsupported"] = "no device";
  EXPECT_THROW((void)OperationLineOf(report), DataError);
}

// A part of its cases is not the whole, but counts if it passes.
TEST(OperationStage, IsWholeWithAllCases) {
  const Stage stage = StageOf("operation cast bf16");
  EXPECT_TRUE(stage.part_counts);
  for (const std::string verdict : {"PASS", "MISTRUSTED"}) {
    Line report = Report(verdict);
    EXPECT_TRUE(stage.whole(report));  // 20 of 20 cases
    report["units"][0]["cases"]["PASS"] = 19;
    EXPECT_FALSE(stage.whole(report));
  }
  Line report = Report("INCONCLUSIVE");
  report["units"][0]["ran"] = 0;
  report["units"][0]["cases"] = {{"UNSUPPORTED", 1}};
  EXPECT_TRUE(stage.whole(report));  // useless, but not for lack of time
  report["units"] = Line::array();
  EXPECT_FALSE(stage.whole(report));
}

TEST(BitsStage, HoldsTheDeviceToItsSimulation) {
  const Stage stage = StageOf("bits of cast bf16");
  for (const char* word : {"run", "op=cast", "impl=same:shim:bf16,shim:bf16",
                           "--edges-first", "report.json.bits.cast.bf16"}) {
    EXPECT_TRUE(HasWord(stage, word)) << word;
  }
  EXPECT_FALSE(stage.why_not.empty());  // this device is the simulation
  EXPECT_TRUE(HasWord(StageOf("bits of rmsnorm fp32", "rmsnorm"),
                      "impl=same:faulty:twice:y:shim,shim"));
  // Products add in the library's order.
  EXPECT_THROW((void)StageOf("bits of gemm fp32"), InternalError);
}

TEST(BitsStage, IsWholeWithAllCases) {
  const Stage stage = StageOf("bits of cast bf16");
  EXPECT_FALSE(stage.part_counts);
  Line report = Report("PASS");
  EXPECT_FALSE(stage.whole(report));  // 20 of 40
  report["units"][0]["cases"]["UNSUPPORTED"] = 20;
  EXPECT_TRUE(stage.whole(report));
}

TEST(SanitizerStage, IsWholeWithAllOperations) {
  const Stage stage = StageOf("memcheck of operations");
  EXPECT_EQ(stage.report, "report.json.memcheck");
  Line report = {{"units", Line::array()}};
  for (size_t i = 0; i < 2 * verify::Operations().size(); ++i) {
    EXPECT_FALSE(stage.whole(report)) << i;
    report["units"].push_back(Line::object());
  }
  EXPECT_TRUE(stage.whole(report));
  EXPECT_TRUE(stage.lines_of(report).empty());
}

// An operation fits on any device.
TEST(StageList, KnowsWhatMayNotFit) {
  int count = 0;
  for (const Stage& stage : Stages({})) {
    EXPECT_EQ(stage.may_not_fit, stage.name.starts_with("step ")) << stage.name;
    count += stage.may_not_fit;
  }
  EXPECT_EQ(count, 5);
}

TEST(GridStage, BeginsWithoutResults) {
  StageOptions options;
  options.grid_out = "record.grid";
  EXPECT_EQ(Stages(options).back().results, "record.grid");
}

TEST(BitsStage, RecordsWhetherTheyAre) {
  const Stage stage = StageOf("bits of rmsnorm bf16");
  for (const bool same : {true, false}) {
    Line report = Report(same ? "PASS" : "FAIL");
    if (!same) report["failures"] = {{{"text", "other bits"}}};
    const std::vector<Line> lines = stage.lines_of(report);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].dump(),
              std::string(R"({"kind":"check","name":"bits of rmsnorm bf16",)") +
                  (same ? R"("passed":true,"utilisation":0.5,"text":""})"
                        : R"("passed":false,"utilisation":0.5,)"
                          R"("text":"other bits"})"));
  }
}

// The lines of the record, one below the other, for a report of `bench` with
// these entries.
std::string TimesOf(const std::string& entries, bool simulated) {
  std::string text;
  for (const Line& line : TimeLines(
           Line::parse("{\"benchmarks\":[" + entries + "]}"), simulated)) {
    text += line.dump() + "\n";
  }
  return text;
}

TEST(TimeStage, RunsBench) {
  const Stage stage = StageOf("times");
  EXPECT_TRUE(stage.command[0].ends_with("/bench_simulated"));
  for (const char* word : {"--device=cuda", "--benchmark_filter=^time/",
                           "--benchmark_out=report.json"}) {
    EXPECT_TRUE(HasWord(stage, word)) << word;
  }
  EXPECT_TRUE(HasWord(StageOf("step sparse4/bf16"),
                      "--benchmark_filter=^step/sparse4/bf16/"));
}

constexpr char kMeasured[] = R"(
{"run_name": "time/rmsnorm/bf16/rmsnorm, backward/4x8/real_time",
 "aggregate_name": "mean", "real_time": 1, "time_unit": "ns", "bytes": 3e6},
{"run_name": "time/rmsnorm/bf16/rmsnorm, backward/4x8/real_time",
 "aggregate_name": "median", "real_time": 2e6, "time_unit": "ns", "bytes": 3e6},
{"run_name": "ceiling/gemm/fp32/product fp32/8x8x8/real_time",
 "real_time": 2e6, "time_unit": "ns", "flops": 4e9},
{"run_name": "ceiling/copy/fp32/copy/64 bytes/real_time",
 "real_time": 2e6, "time_unit": "ns", "bytes": 3e6},
{"run_name": "algorithm/gemm/bf16/qkv/4x2x2/3/real_time",
 "real_time": 2e6, "time_unit": "ns", "flops": 4e9},
{"run_name": "step/sparse2/bf16/iterations:1/real_time", "label": "none",
 "real_time": 2e6, "time_unit": "ms", "active_experts": 2.0, "loss": 10.5,
 "sequences": 2.4e2, "memory_bytes": 7e10, "tokens/s": 123.0})";

TEST(TimeStage, RecordsWhatBenchMeasures) {
  EXPECT_EQ(
      TimesOf(kMeasured, /*simulated=*/false),
      R"({"kind":"time","name":"rmsnorm, backward","operation":"rmsnorm",)"
      R"("precision":"bf16","shape":"4x8","flops":0.0,"bytes":3000000.0,)"
      R"("seconds":0.002})"
      "\n"
      R"({"kind":"ceiling","name":"product fp32","shape":"8x8x8",)"
      R"("unit":"TFLOP/s","value":2.0})"
      "\n"
      R"({"kind":"ceiling","name":"copy","shape":"64 bytes","unit":"GB/s",)"
      R"("value":1.5})"
      "\n"
      R"({"kind":"algorithm","name":"qkv","precision":"bf16","shape":"4x2x2",)"
      R"("choice":3,"flops":4000000000.0,"seconds":0.002})"
      "\n"
      R"({"kind":"step","row":"sparse2","active_experts":2.0,)"
      R"("precision":"bf16",)"
      R"("sequences":240,"recompute":"none","loss":10.5,)"
      R"("memory_bytes":70000000000,"seconds":2000.0,)"
      R"("tokens_per_second":123.0})"
      "\n");
  const std::string simulated = TimesOf(kMeasured, /*simulated=*/true);
  EXPECT_TRUE(Says(simulated, R"("bytes":3000000.0})", R"("unit":"GB/s"})",
                   R"("flops":4000000000.0})",
                   R"("memory_bytes":70000000000})"));
}

// A benchmark that has no memory fails, once; that a library has fewer
// algorithms is no failure.
TEST(TimeStage, RecordsWhatBenchCannotRun) {
  EXPECT_EQ(TimesOf(R"(
{"run_name": "time/add/x", "repetition_index": 0, "error_message": "no room"},
{"run_name": "time/add/x", "repetition_index": 1, "error_message": "no room"},
{"run_name": "algorithm/a/b/c/d/0/real_time", "error_message": "none"},
{"run_name": "algorithm/a/b/c/d/1/real_time", "error_message": "none"})",
                    /*simulated=*/false),
            R"({"kind":"check","name":"time/add/x","passed":false,)"
            R"("utilisation":0,"text":"no room"})"
            "\n"
            R"({"kind":"check","name":"algorithm/a/b/c/d/0/real_time",)"
            R"("passed":false,"utilisation":0,"text":"none"})"
            "\n");
}

// The stage has failed then (run_stages_test).
TEST(StageList, RefusesReportsOfAnotherShape) {
  for (const char* text : {"{}", R"({"units":[]})", R"({"units":[{}]})"}) {
    EXPECT_THROW((void)OperationLineOf(Line::parse(text)), Line::exception)
        << text;
  }
  for (const char* text : {"{}", R"({"benchmarks":[{}]})"}) {
    EXPECT_THROW((void)TimeLines(Line::parse(text), /*simulated=*/false),
                 Line::exception)
        << text;
  }
}

TEST(FactsStage, SaysThatThereAreOtherDevices) {
  for (const int devices : {1, 3}) {
    simt::SetDeviceLimits({.devices = devices});
    testing::internal::CaptureStderr();
    EXPECT_TRUE(RunStage(kFactsStage).passed);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.starts_with("the first of 3 devices; CUDA_VISIBLE_DEVICES="),
              devices == 3)
        << said;
  }
  simt::SetDeviceLimits({});
}

TEST(NcclStage, GoesThroughEveryCall) {
  const std::vector<std::string> calls = {
      "ncclGetVersion", "ncclGetUniqueId",       "ncclCommInitRankConfig",
      "ncclSend",       "ncclCommGetAsyncError", "ncclRecv",
      "ncclBroadcast",  "ncclGroupStart",        "ncclGroupEnd",
      "ncclCommAbort",  "ncclCommDestroy"};
  for (const std::string& call : calls) {
    EXPECT_EQ(simt::CallsOf(call.c_str()), 0) << call;
  }
  const Told told = RunStage(kNcclStage);
  EXPECT_TRUE(told.passed);
  ASSERT_EQ(told.lines.size(), 2u);
  for (const Line& line : told.lines) {
    EXPECT_EQ(line["passed"], true);
    EXPECT_EQ(line["answer"], "NCCL 2.28.9");
  }
  for (const std::string& call : calls) {
    EXPECT_GT(simt::CallsOf(call.c_str()), 0) << call;
  }
  EXPECT_EQ(simt::LiveNcclCommunicators(), 0);
  EXPECT_EQ(simt::LiveAllocations(), 0);
}

TEST(NcclStage, NoticesAByteThatDoesNotArrive) {
  const Told told = RunStage(kNcclStage, /*planted_nccl=*/true);
  EXPECT_FALSE(told.passed);
  ASSERT_EQ(told.lines.size(), 2u);
  EXPECT_EQ(told.lines[0]["passed"], false);
  EXPECT_EQ(told.lines[0]["answer"],
            "what was exchanged of 1 bytes: byte 0 is 0, and was 7; "
            "what was exchanged of 4096 bytes: byte 4095 is 0, and was 6; "
            "what was exchanged of 3000001 bytes: byte 3000000 is 0, and was "
            "199; ");
  EXPECT_EQ(told.lines[1]["passed"], true);
  EXPECT_TRUE(HasWord(StageOf(kNcclStage, kNcclStage), "--plant"));
  EXPECT_FALSE(HasWord(StageOf("probes", kNcclStage), "--plant"));
}

TEST(NcclStage, SaysWhichCallFails) {
  simt::FailCall("ncclBroadcast", 1, 2);
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { (void)RunStage(kNcclStage); }),
           "ncclBroadcast fails"));
}

TEST(StageList, HasEveryOperationInBothPrecisions) {
  std::vector<std::string> names;
  for (const Stage& stage : Stages(StageOptions())) names.push_back(stage.name);
  EXPECT_EQ(names.front(), kFactsStage);
  const auto place = [&](const std::string& name) {
    return std::ranges::find(names, name) - names.begin();
  };
  const auto end = static_cast<int64_t>(names.size());
  for (const char* name :
       {"operation gemm fp32", "operation gemm bf16", "operation router fp32",
        "operation cast bf16", "nccl", "model", "update", "repeat"}) {
    EXPECT_LT(place(name), place("times")) << name;
  }
  EXPECT_LT(place("times"), place("step sparse2/bf16"));
  // Slow stages come last, so that even a short lease gives times.
  EXPECT_LT(place("step sparse2/bf16"), place("memcheck of operations"));
  // Forms that do not exist.
  EXPECT_EQ(place("operation router bf16"), end);
  EXPECT_EQ(place("operation cast fp32"), end);
}

TEST(StageList, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW((void)RunStage("dreams"), ConfigError);
  StageOptions options;
  options.planted = "rmsnrom";
  EXPECT_THROW((void)Stages(options), ConfigError);
}

}  // namespace
}  // namespace softmoe::gpu
