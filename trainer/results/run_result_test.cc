// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

Validation NumberedValidation(double first) {
  return {.loss = first,
          .num_tokens = 128,
          .active_experts = first + 1.0 / 7,
          .zero_active_fraction = first + 2.0 / 7,
          .layer_active_experts = {first + 3.0 / 7, first + 4.0 / 7},
          .active_histogram = {{1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}},
          .tokens_per_expert = {{11, 12, 13, 14}, {15, 16, 17, 18}},
          .relative_load_variance = first + 5.0 / 7,
          .load_cv = first + 6.0 / 7,
          .load_var_over_mean = first + 8.0 / 7};
}

RunResult NumberedResult() {
  RunResult result;
  result.config = TinyConfig(RouterKind::kSoftLearned);
  result.config.training.steps = 3;
  result.identity = {
      .config = result.config, .tokens = {"d1", "d2", ""}, .isa = "v3"};
  result.config.router.tau = 1.0 / 3.0;
  result.tau = 1.0 / 3.0;
  result.tau_calibrated = true;
  result.parameters = 12345;
  for (int64_t i = 1; i <= 3; ++i) result.steps.push_back(NumberedRecord(i, 2));
  result.at_schedule_temperature = NumberedValidation(2.0 / 3);
  result.final_validation = NumberedValidation(4.0 / 3);
  result.unigram_loss = 5.0 / 3;
  result.train_ae = 7.0 / 3;
  result.allocation = {8.0 / 3, 10.0 / 3};
  result.max_active = 3;
  result.most_active_in_a_token = 2;
  result.seconds = 11.0 / 3;
  result.resumed = true;
  result.code_version = "0123456789ab, 0123456789ac+changes";
  return result;
}

FinalEvaluations NumberedEvaluations() {
  FinalEvaluations evaluations;
  evaluations.code_version = "0123456789ad";
  for (int i = 0; i < 12; ++i) {  // "10" and "11" sort before "2"
    const double x = 100 + i / 7.0;
    evaluations.inference_tau.push_back(
        {.factor = x, .tau = 2 * x, .validation = NumberedValidation(3 * x)});
  }
  evaluations.inference_tau[1].validation.active_histogram.clear();
  for (int l = 0; l < 2; ++l) {
    const double x = 200 + l / 7.0;
    evaluations.router_health.push_back({.load_entropy = x,
                                         .relative_load_entropy = 2 * x,
                                         .dead_experts = 4 * l,  // none, all
                                         .at_cap_fraction = 4 * x,
                                         .zero_active_fraction = 5 * x,
                                         .truncated_mass = 6 * x});
  }
  const TaskResult task{.name = "piqa",
                        .sha256 = "d3",
                        .measures = {{2, 1, 1.0 / 7},
                                     {1, 0.5, 2.0 / 7},
                                     {0, 0, 3.0 / 7},
                                     {1, 0.5, 4.0 / 7}},
                        .right = {1, 11}};
  evaluations.tasks = {task, task};
  evaluations.tasks[1].name = "hellaswag";
  evaluations.inference_tau[10].tasks = evaluations.tasks;
  return evaluations;
}

TEST(RunResult, ReadsBackEveryBit) {
  const auto path = FreshFolder("result") / "result.h5";
  const RunResult result = NumberedResult();
  WriteRunResult(result, path);
  const RunResult read = ReadRunResult(path);
  ExpectSameResult(result, read);
  EXPECT_EQ(read.seconds, result.seconds);
  EXPECT_EQ(read.resumed, true);
}

TEST(RunResult, ReadsBackEveryEvaluation) {
  const auto path = FreshFolder("evaluations") / "result.h5";
  RunResult result = NumberedResult();
  const auto expect_same = [&] {
    WriteRunResult(result, path);
    ExpectSameResult(result, ReadRunResult(path));
  };
  // No evaluations until a plan asks, nor in older files.
  EXPECT_FALSE(result.final_evaluations.has_value());
  expect_same();
  result.final_evaluations = NumberedEvaluations();
  expect_same();
  // The sparse router behaves in the same way.
  result.config = TinyConfig(RouterKind::kSparse);
  result.config.training.steps = 3;
  result.identity.config = result.config;
  result.identity.config.router.tau.reset();
  result.final_evaluations->inference_tau.clear();
  for (RouterHealth& layer : result.final_evaluations->router_health) {
    layer.truncated_mass.reset();
  }
  expect_same();
  result = NumberedResult();
  result.final_evaluations = NumberedEvaluations();
  result.final_evaluations->router_health.clear();
  expect_same();
}

TEST(RunResult, EqualResultsGiveEqualBytes) {
  const auto folder = FreshFolder("bytes");
  WriteRunResult(NumberedResult(), folder / "a.h5");
  WriteRunResult(NumberedResult(), folder / "b.h5");
  std::ifstream a(folder / "a.h5"), b(folder / "b.h5");
  const std::string bytes_a(std::istreambuf_iterator<char>(a), {});
  const std::string bytes_b(std::istreambuf_iterator<char>(b), {});
  EXPECT_GT(bytes_a.size(), 1000u);
  EXPECT_TRUE(bytes_a == bytes_b);
}

std::string Refusal(const RunResult& result) {
  const auto path = FreshFolder("refused") / "result.h5";
  WriteRunResult(result, path);
  return MessageOf<DataError>([&] { ReadRunResult(path); });
}

TEST(RunResult, RefusesNumbersThatAreNone) {
  const double nan = std::nan("");
  const std::vector<std::pair<std::string, std::function<void(RunResult&)>>>
      damages = {
          {"attribute tau of / is nan", [&](RunResult& r) { r.tau = nan; }},
          {"/validation/final is nan",
           [&](RunResult& r) { r.final_validation.loss = nan; }},
          {"/validation/schedule/layer_active_experts holds nan",
           [&](RunResult& r) {
             r.at_schedule_temperature.layer_active_experts[1] = nan;
           }},
          {"/allocation holds inf",
           [&](RunResult& r) { r.allocation[0] = INFINITY; }},
          {"/steps/loss holds nan",
           [&](RunResult& r) { r.steps[2].loss = nan; }},
          {"the file was written by another version of this program",
           [&](RunResult& r) { r.config.training.steps = -1; }},
          {"does not have the hash it was stored with",
           [&](RunResult& r) { r.identity.config.training.seed = 7; }},
          {"holds 2 steps, its configuration says 3",
           [&](RunResult& r) { r.steps.pop_back(); }},
          {"/validation/final/tokens_per_expert is [2, 1], expected [2, 4]",
           [&](RunResult& r) {
             r.final_validation.tokens_per_expert = {{1}, {2}};
           }},
          {"/validation/final/active_histogram",
           [&](RunResult& r) { r.final_validation.active_histogram.clear(); }},
          {"attribute tau of /final_evaluations/inference_tau/11 is nan",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->inference_tau[11].tau = nan;
           }},
          {"attribute loss of /final_evaluations/inference_tau/1 is inf",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->inference_tau[1].validation.loss = INFINITY;
           }},
          {"/final_evaluations/router_health/at_cap_fraction holds nan",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->router_health[1].at_cap_fraction = nan;
           }},
          {"/final_evaluations/router_health/dead_experts is 5 in layer 2",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->router_health[1].dead_experts = 5;
           }},
          {"/final_evaluations/router_health/load_entropy is [1], expected [2]",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->router_health.pop_back();
           }},
          {"/final_evaluations/router_health/truncated_mass is [1], expected "
           "[2]",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->router_health[0].truncated_mass.reset();
           }},
          {"/final_evaluations/tasks/1/right does not have the right answers",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->tasks[1].right[0] = 3;
           }},
          {"/inference_tau/10/tasks/0/right does not have the right answers",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->inference_tau[10].tasks[0].right[0] = 17;
           }},
          {"/final_evaluations/tasks/0/standard_error holds nan",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->tasks[0].measures[3].standard_error = nan;
           }},
          {"/final_evaluations/tasks/0/correct is [3], expected [4]",
           [&](RunResult& r) {
             r.final_evaluations = NumberedEvaluations();
             r.final_evaluations->tasks[0].measures.pop_back();
           }},
      };
  for (const auto& [expected, damage] : damages) {
    RunResult result = NumberedResult();
    damage(result);
    const std::string message = Refusal(result);
    EXPECT_TRUE(Says(message, expected, "result.h5"));
  }
}

}  // namespace
}  // namespace softmoe::trainer
