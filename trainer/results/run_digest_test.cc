// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_digest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

RunResult Example() {
  RunResult result;
  result.tau = 0.5;
  result.allocation = {1, 2};
  for (int64_t i = 1; i <= 3; ++i) result.steps.push_back(NumberedRecord(i, 2));
  for (Validation* v :
       {&result.final_validation, &result.at_schedule_temperature}) {
    v->loss = 3;
    v->layer_active_experts = {1, 2};
    v->active_histogram = {{1, 2}, {3, 4}};
    v->tokens_per_expert = {{5, 6}, {7, 8}};
  }
  return result;
}

template <typename Record>
void Expect(const Record& example, std::string (*digest)(const Record&),
            const std::vector<std::function<void(Record&)>>& changes) {
  std::set<std::string> seen = {digest(example)};
  EXPECT_EQ(seen.begin()->size(), 64u);
  for (size_t i = 0; i < changes.size(); ++i) {
    Record changed = example;
    changes[i](changed);
    EXPECT_TRUE(seen.insert(digest(changed)).second) << "change " << i;
  }
}

// The digest changes with the last bit of one number, or with its place.
TEST(RunDigest, SeesEveryNumberOfTraining) {
  Expect<RunResult>(
      Example(), TrainingDigest,
      {[](RunResult& r) { r.tau = std::nextafter(r.tau, 1); },
       [](RunResult& r) { r.parameters = 1; },
       [](RunResult& r) { r.unigram_loss = -0.0; },
       [](RunResult& r) { std::swap(r.allocation[0], r.allocation[1]); },
       [](RunResult& r) {
         r.steps[1].loss = std::nextafter(r.steps[1].loss, 1e9);
       },
       [](RunResult& r) { r.steps[2].layer_active_experts[1] += 1; },
       [](RunResult& r) { std::swap(r.steps[0], r.steps[1]); },
       [](RunResult& r) { r.steps.pop_back(); },
       [](RunResult& r) { r.final_validation.loss = std::nextafter(3, 4); },
       [](RunResult& r) {
         r.at_schedule_temperature.loss = std::nextafter(3, 4);
       },
       [](RunResult& r) { r.final_validation.tokens_per_expert[1][1] = 9; },
       [](RunResult& r) {
         r.final_validation.active_histogram = {{1, 2, 3}, {4}};
       }});
}

// Records of runs contain the digest.
TEST(RunDigest, IsTheSameInEveryVersion) {
  EXPECT_EQ(TrainingDigest(Example()),
            "e3b5d47b10a2a70c6fd6ba942376bd00602568307f4afbfe45a59ee0a9c8e7bb");
}

TEST(RunDigest, IsBlindToClocksAndWords) {
  const std::string digest = TrainingDigest(Example());
  RunResult other = Example();
  other.seconds = 7;
  other.resumed = true;
  other.code_version = "another";
  other.config.training.seed = 99;
  other.steps[0].seconds = 100;
  other.steps[0].tokens_per_second = 100;
  other.final_evaluations.emplace();
  EXPECT_EQ(TrainingDigest(other), digest);
}

TEST(RunDigest, SeesEveryNumberOfEvaluations) {
  FinalEvaluations example;
  example.inference_tau.resize(2);
  example.router_health.resize(2);
  Expect<FinalEvaluations>(
      example, EvaluationsDigest,
      {[](FinalEvaluations& e) { e.inference_tau[0].factor = 2; },
       [](FinalEvaluations& e) { e.inference_tau[0].tau = 2; },
       [](FinalEvaluations& e) { e.inference_tau[0].validation.loss = 2; },
       [](FinalEvaluations& e) { e.inference_tau[1].validation.loss = 2; },
       [](FinalEvaluations& e) { e.router_health[0].dead_experts = 1; },
       [](FinalEvaluations& e) { e.router_health[1].dead_experts = 1; },
       [](FinalEvaluations& e) { e.router_health[1].truncated_mass = 0; },
       [](FinalEvaluations& e) { e.router_health.pop_back(); }});
  FinalEvaluations other = example;
  other.code_version = "another";
  EXPECT_EQ(EvaluationsDigest(other), EvaluationsDigest(example));
}

// Example with evaluations. No number that the tests below change has its
// default, which would mean that an older record lacks it.
RunResult Evaluated() {
  Validation validation;
  validation.loss = 3;
  validation.load_cv = 4;
  const TaskResult task{.name = "piqa",
                        .sha256 = "d3",
                        .measures = {{2, 1, 0.25}, {1, 0.5, 0.5}},
                        .right = {1, 1}};
  RunResult result = Example();
  RouterHealth health;
  health.dead_experts = 1;
  health.truncated_mass = 1;
  const InferenceTau at{.validation = validation, .tasks = {task}};
  result.final_evaluations = {.code_version = "a",
                              .inference_tau = {at, at},
                              .router_health = {health, health},
                              .tasks = {task, task}};
  return result;
}

TEST(RunDigest, OfEvaluationsIsTheSameInEveryVersion) {
  EXPECT_EQ(EvaluationsDigest(*Evaluated().final_evaluations),
            "8899f4f0d4ae51a41d5e78772fae5678c7d483205eb0bc151400e21820fdf954");
}

bool Any(const Metric&) { return true; }
bool None(const Metric&) { return false; }

TEST(SameMetrics, SeesEveryNumberThatBothHave) {
  const RunResult there = Evaluated();
  EXPECT_TRUE(SameMetrics(there, Evaluated(), Any));
  const std::function<void(RunResult&)> kChanges[] = {
      [](RunResult& r) { r.tau = std::nextafter(r.tau, 1); },
      [](RunResult& r) { std::swap(r.allocation[0], r.allocation[1]); },
      [](RunResult& r) { r.steps[0].loss += 1; },
      [](RunResult& r) { r.steps[2].layer_active_experts[1] += 1; },
      [](RunResult& r) { r.final_validation.loss = 4; },
      [](RunResult& r) { r.final_validation.tokens_per_expert[1][1] = 9; },
      [](RunResult& r) { r.at_schedule_temperature.loss = 4; },
      [](RunResult& r) {
        r.final_evaluations->inference_tau[1].validation.load_cv = 5;
      },
      [](RunResult& r) {
        r.final_evaluations->inference_tau[1].tasks[0].measures[1].correct = 2;
      },
      [](RunResult& r) {
        r.final_evaluations->router_health[1].dead_experts = 2;
      },
      [](RunResult& r) {
        r.final_evaluations->router_health[0].truncated_mass.reset();
      },
      [](RunResult& r) {
        r.final_evaluations->tasks[1].measures[0].standard_error = 0.5;
      }};
  for (const auto& change : kChanges) {
    const auto at = &change - kChanges;
    RunResult here = Evaluated();
    change(here);
    EXPECT_FALSE(SameMetrics(there, here, Any)) << "change " << at;
    EXPECT_TRUE(SameMetrics(there, here, None)) << "change " << at;
  }
  RunResult here = Evaluated();
  here.final_validation.loss = 4;
  EXPECT_TRUE(SameMetrics(there, here, [](const Metric& metric) {
    return std::string(metric.name) != metrics::kLoss.name;
  }));
}

TEST(SameMetrics, DoesNotAskForWhatAnOlderRecordLacks) {
  const RunResult here = Evaluated();
  const std::function<void(RunResult&)> kOlder[] = {
      [](RunResult& r) { r.steps.erase(r.steps.begin() + 1); },
      [](RunResult& r) { r.steps[1].loss = 0; },
      [](RunResult& r) { r.steps[1].allocation.clear(); },
      [](RunResult& r) { r.unigram_loss = 0; },
      [](RunResult& r) { r.final_validation.active_histogram.clear(); },
      [](RunResult& r) {
        for (RouterHealth& layer : r.final_evaluations->router_health) {
          layer.truncated_mass.reset();
        }
      },
      [](RunResult& r) { r.final_evaluations.reset(); }};
  for (const auto& older : kOlder) {
    RunResult there = here;
    older(there);
    EXPECT_TRUE(SameMetrics(there, here, Any)) << "older " << &older - kOlder;
  }
}

}  // namespace
}  // namespace softmoe::trainer
