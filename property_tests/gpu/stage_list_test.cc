// SPDX-License-Identifier: Apache-2.0
//
// Runs stages in this process on the simulated device, without a record.
#include "property_tests/gpu/stage_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "kernels/simt/device/device.h"

namespace softmoe::gpu {
namespace {

// What a stage reported, and whether it passed.
struct Told {
  bool passed = false;
  std::vector<Line> lines;
};
Told RunStage(const std::string& stage, const std::string& planted = "") {
  Told told;
  StageContext context;
  context.seconds = 600;
  context.planted = planted;
  context.tell = [&](const Line& line) { told.lines.push_back(line); };
  told.passed = RunBody(stage, context);
  return told;
}

TEST(OperationStage, TellsOfTheSourcesThatItRan) {
  const Told told = RunStage("operation cast bf16");
  EXPECT_TRUE(told.passed);
  ASSERT_EQ(told.lines.size(), 1u);
  const Line& line = told.lines[0];
  EXPECT_EQ(line["passed"], true);
  EXPECT_EQ(line["failures"], 0);
  EXPECT_EQ(line["bound"], "cast/1+bf16/1");
  const std::string sources =
      ReadWholeFile(RunfilePath("bazel/operation_sources.txt"));
  EXPECT_TRUE(
      Says(sources, "\ncast " + line["sources"].get<std::string>() + "\n"))
      << line.dump();
}

TEST(OperationStage, FailsWithAnOperationThatIsWrong) {
  const Told told = RunStage("operation cast bf16", "cast");
  EXPECT_FALSE(told.passed);
  ASSERT_EQ(told.lines.size(), 1u);
  EXPECT_EQ(told.lines[0]["passed"], false);
  EXPECT_GT(told.lines[0]["failures"], 0);
  EXPECT_TRUE(Says(told.lines[0]["text"].get<std::string>(), "REPRO"));
  EXPECT_TRUE(RunStage("operation cast bf16", "add").passed);
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
  const Told told = RunStage(kNcclStage, kNcclStage);
  EXPECT_FALSE(told.passed);
  ASSERT_EQ(told.lines.size(), 2u);
  EXPECT_EQ(told.lines[0]["passed"], false);
  EXPECT_EQ(told.lines[0]["answer"],
            "what was exchanged of 1 bytes: byte 0 is 0, and was 7; "
            "what was exchanged of 4096 bytes: byte 4095 is 0, and was 6; "
            "what was exchanged of 3000001 bytes: byte 3000000 is 0, and was "
            "199; ");
  EXPECT_EQ(told.lines[1]["passed"], true);
  StageOptions options;
  options.planted = kNcclStage;
  EXPECT_NO_THROW((void)Stages(options));
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
  for (const char* name : {"operation gemm fp32", "operation gemm bf16",
                           "operation router fp32", "operation cast bf16",
                           "nccl", "model", "update", "repeat", "memcheck"}) {
    EXPECT_LT(place(name), place("times")) << name;
  }
  EXPECT_LT(place("times"), place("step with AE = 2 in bf16"));
  EXPECT_LT(place("step with AE = 2 in bf16"), end);
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
