// SPDX-License-Identifier: Apache-2.0
//
// Stages run in this process, on the simulated device, without a record.
#include "property_tests/gpu/stage_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/runfiles.h"

namespace softmoe::gpu {
namespace {

// What a stage told, and whether it passed.
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
  EXPECT_NE(sources.find("\ncast " + line["sources"].get<std::string>() + "\n"),
            std::string::npos)
      << line.dump();
}

TEST(OperationStage, FailsWithAnOperationThatIsWrong) {
  const Told told = RunStage("operation cast bf16", "cast");
  EXPECT_FALSE(told.passed);
  ASSERT_EQ(told.lines.size(), 1u);
  EXPECT_EQ(told.lines[0]["passed"], false);
  EXPECT_GT(told.lines[0]["failures"], 0);
  EXPECT_NE(told.lines[0]["text"].get<std::string>().find("REPRO"),
            std::string::npos);
  EXPECT_TRUE(RunStage("operation cast bf16", "add").passed);
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
        "operation cast bf16", "model", "update", "repeat", "memcheck"}) {
    EXPECT_LT(place(name), place("times")) << name;
  }
  EXPECT_LT(place("times"), place("step with AE = 2 in bf16"));
  EXPECT_LT(place("step with AE = 2 in bf16"), end);
  // What has no such form.
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
