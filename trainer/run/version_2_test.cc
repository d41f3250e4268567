// SPDX-License-Identifier: Apache-2.0
//
// Results and checkpoints of version 2, with other names for some metrics, are
// read correctly. The last program that wrote version 2 made the files in
// testdata/version_2 (see README.md there).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/trainer.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

using Json = nlohmann::ordered_json;

std::filesystem::path Written(const std::string& name) {
  return RunfilePath("trainer/run/testdata/version_2/" + name);
}

// Lines of metrics.jsonl from that program: the same numbers to the bit, under
// version 2's names.
std::vector<Json> Lines(const std::string& kind) {
  std::vector<Json> lines;
  for (const Json& line : ReadJsonLines(Written("metrics.jsonl"))) {
    if (line.at("kind") == kind) lines.push_back(line);
  }
  return lines;
}

template <typename Value>
void ExpectEqual(const Json& line, const Metric& metric, const Value& got) {
  const std::string name = NameIn(2, metric);
  ASSERT_TRUE(line.contains(name)) << name;
  EXPECT_EQ(line.at(name).get<Value>(), got) << name;
}

void ExpectSteps(const std::vector<StepRecord>& steps, size_t count) {
  const std::vector<Json> lines = Lines("step");
  ASSERT_EQ(steps.size(), count);
  ASSERT_GE(lines.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(lines[i].at("step"), steps[i].step);
    VisitStepMetrics([&](const Metric& metric, auto member) {
      // The checkpoint is from another run, which gave the same bits.
      if (!metric.clock) ExpectEqual(lines[i], metric, steps[i].*member);
    });
  }
}

TEST(Version2, ResultIsRead) {
  const RunResult result = ReadRunResult(Written("result.h5"));
  EXPECT_EQ(result.config.router.kind, RouterKind::kSoftLearned);
  ExpectSteps(result.steps, 4);

  const Json final = Json::parse(ReadWholeFile(Written("evaluation.json")));
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    ExpectEqual(final, metric, result.final_validation.*member);
  });
  ExpectEqual(final, metrics::kUnigramLoss, result.unigram_loss);
  ExpectEqual(final, metrics::kTau, result.tau);
  EXPECT_TRUE(result.tau_calibrated);
  EXPECT_FALSE(result.resumed);

  const Json last = Lines("validation").back();
  ExpectEqual(last, metrics::kScheduleLoss,
              result.at_schedule_temperature.loss);
  ExpectEqual(last, metrics::kScheduleActiveExperts,
              result.at_schedule_temperature.active_experts);
  EXPECT_EQ(result.train_ae, TrainActiveExperts(result.steps));
  // The allocation after the last update; a step records the value before its
  // update.
  ASSERT_EQ(result.allocation.size(), 2u);
  EXPECT_NE(result.allocation, result.steps.back().allocation);
}

TEST(Version2, ResultIsTheSameWhenItIsWrittenAnew) {
  const auto path = FreshFolder("anew") / "result.h5";
  const RunResult result = ReadRunResult(Written("result.h5"));
  WriteRunResult(result, path);
  ExpectSameResult(result, ReadRunResult(path));
}

TEST(Version2, CheckpointIsRead) {
  const Checkpoint checkpoint(Written("checkpoint.h5"));
  const TrainState& state = checkpoint.state();
  EXPECT_EQ(state.step, 3);
  ExpectSteps(state.history, 3);
  const Json run = Lines("run").front();
  ExpectEqual(run, metrics::kTau, state.tau);
  const std::vector<Json> lines = Lines("validation");
  ASSERT_EQ(state.evaluations.size(), 1u);
  EXPECT_EQ(state.evaluations[0].step, lines[0].at("step"));
  VisitEvaluationMetrics([&](const Metric& metric, auto member) {
    ExpectEqual(lines[0], metric, state.evaluations[0].*member);
  });
}

TEST(Version2, CheckpointGoesOn) {
  const auto folder = FreshFolder("goes_on");
  RunOptions options;
  options.tokens = WriteTinyTokens(folder / "data");
  options.folder = folder / "run";
  options.quiet = true;
  options.runtime.isa = "v3";  // as trained
  std::filesystem::create_directory(options.folder);
  std::filesystem::copy_file(Written("checkpoint.h5"),
                             options.folder / kCheckpointName);
  const Config config = Checkpoint(Written("checkpoint.h5")).identity().config;
  const RunResult result = TrainRun(config, options);
  EXPECT_TRUE(result.resumed);
  ASSERT_EQ(result.steps.size(), 4u);
  ExpectSteps({result.steps.begin(), result.steps.begin() + 3}, 3);
  // The files that it leaves have today's version.
  const Checkpoint left(options.folder / kCheckpointName);
  ExpectSameRecords(left.state().history, result.steps);
  EXPECT_EQ(left.state().evaluations[0].relative_load_variance,
            Lines("validation")[0].at("load_variance"));
}

}  // namespace
}  // namespace softmoe::trainer
