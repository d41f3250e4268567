// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_digest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

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

// Records of runs carry it.
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

}  // namespace
}  // namespace softmoe::trainer
