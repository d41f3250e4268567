// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/invariants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

const Invariant& Find(const std::vector<Invariant>& invariants,
                      const std::string& id) {
  for (const Invariant& invariant : invariants) {
    if (invariant.id == id) return invariant;
  }
  static const Invariant kMissing{"missing", "missing", true};
  ADD_FAILURE() << "no invariant " << id;
  return kMissing;
}

TEST(Invariants, HoldForAGoodGrid) {
  const std::vector<Invariant> invariants = CheckInvariants(ExampleOutcome());
  EXPECT_EQ(invariants.size(), 10u);
  for (const Invariant& invariant : invariants) {
    EXPECT_TRUE(invariant.holds) << invariant.id << ": " << invariant.detail;
    EXPECT_FALSE(invariant.detail.empty()) << invariant.id;
  }
  EXPECT_TRUE(AllHold(invariants));
  EXPECT_FALSE(AllHold({}));
}

// Moves one token of `layer` from `from` to `to` active experts.
void MoveToken(size_t layer, size_t from, size_t to, trainer::Validation& v) {
  v.active_histogram[layer][from] -= 1;
  v.active_histogram[layer][to] += 1;
  v.tokens_per_expert[layer][0] +=
      static_cast<int64_t>(to) - static_cast<int64_t>(from);
}

// Breaks one invariant in one run: it alone fails, and names the run.
struct Break {
  const char* id;    // the invariant
  const char* row;   // the run that is changed
  const char* says;  // part of the detail
  std::function<void(trainer::RunResult&)> change;
  std::set<std::string> also = {};  // other invariants that fail with it
};

std::vector<Break> Breaks() {
  using R = trainer::RunResult;
  const double kNaN = std::numeric_limits<double>::quiet_NaN();
  return {
      // 64 u K, u = 2^-53: the bound is 2 (L + 4) u K = 14 u K.
      {"allocation_sum", "soft-2", "at the end, K = 6",
       [](R& r) { r.allocation[0] += 6 * 0x1p-47; }},
      {"allocation_sum", "soft-2", "at step 9, K = 6",
       [](R& r) { r.steps[8].allocation[1] -= 6 * 0x1p-47; }},
      {"allocation_sum",
       "soft-2",
       "nan at step 2",
       [kNaN](R& r) { r.steps[1].allocation[1] = kNaN; },
       {"allocation_floor", "cap"}},
      {"allocation_floor", "star-1.5", "0.9999",
       [](R& r) { r.allocation[2] = 0.9999; }},
      {"allocation_floor", "star-1.5", "0.9998",
       [](R& r) { r.steps[3].allocation[2] = 0.9998; }},
      {"allocation_floor",
       "star-1.5",
       "nan",
       [kNaN](R& r) { r.steps[3].allocation[0] = kNaN; },
       {"cap"}},
      {"cap", "sparse-2", "at most 3 of 2 allowed over the run",
       [](R& r) { r.most_active_in_a_token = 3; }},
      {"cap", "star-1.5", "at most 4 of 3 allowed over the run",
       [](R& r) { r.most_active_in_a_token = 4; }},
      // k_l = 1.75, 2, 2.25 and a factor of 2: caps 4, 4, 5. Five experts are
      // too many in layer 1, although layer 3 may have them.
      {"cap", "soft-2", "at most 5 of 4 allowed in validation, layer 1",
       [](R& r) { MoveToken(0, 2, 5, r.final_validation); }},
      {"cap", "soft-2", "a mean of 4.5 of 4 allowed in step 4, layer 1",
       [](R& r) { r.steps[3].layer_active_experts[0] = 4.5; }},
      {"cap", "soft-2", "the caps went up to 6, but only 5 are allowed",
       [](R& r) { r.max_active = 6; }},
      {"sparse_exactly_k", "sparse-2", "k = 2",
       [](R& r) { r.train_ae = std::nextafter(2.0, 3.0); }},
      {"sparse_exactly_k",
       "sparse-2",
       "0.5 in validation",
       [](R& r) { r.final_validation.active_experts = 0.5; },
       {"sparse_active_parameters"}},
      {"sparse_exactly_k", "sparse-2", "in step 40",
       [](R& r) { r.steps[39].active_experts = std::nextafter(2.0, 1.0); }},
      // Fewer than k experts violate no cap.
      {"sparse_exactly_k", "sparse-2",
       "999 of 1000 validation tokens in layer 2",
       [](R& r) { MoveToken(1, 2, 1, r.at_schedule_temperature); }},
      {"finite_losses", "sparse-1", "in step 7",
       [kNaN](R& r) { r.steps[6].z_loss = kNaN; }},
      {"loss_falls", "star-1.5", "->",
       [](R& r) {
         for (auto& step : r.steps) step.loss = 4;
       }},
      {"below_unigram", "soft-2", "against",
       [](R& r) { r.unigram_loss = r.final_validation.loss + 0.2999; }},
      {"counts_add_up", "sparse-1", "layer 2",
       [](R& r) { r.final_validation.tokens_per_expert[1][0] += 1; }},
      {"counts_add_up", "soft-2", "layer 3",
       [](R& r) { r.at_schedule_temperature.active_histogram[2][0] += 1; }},
  };
}

TEST(Invariants, EachOneCanBreak) {
  for (const Break& broken : Breaks()) {
    GridOutcome outcome = ExampleOutcome();
    RunOutcome& run = RunOf(outcome, broken.row);
    broken.change(*run.result);
    const std::vector<Invariant> invariants = CheckInvariants(outcome);
    const Invariant& invariant = Find(invariants, broken.id);
    EXPECT_FALSE(invariant.holds) << broken.id;
    EXPECT_TRUE(Says(invariant.detail, run.run.id, broken.says));
    for (const Invariant& other : invariants) {
      if (other.id == broken.id) continue;
      EXPECT_EQ(other.holds, !broken.also.contains(other.id))
          << broken.id << " also breaks " << other.id << ": " << other.detail;
    }
    EXPECT_FALSE(AllHold(invariants));
  }
}

// Of a recorded run some steps are left: k_l may have been larger between them.
TEST(Invariants, CapsBetweenRecordedStepsAreNotKnown) {
  GridOutcome outcome = ExampleOutcome();
  trainer::RunResult& result = *RunOf(outcome, "soft-2").result;
  result.max_active = 6;
  EXPECT_FALSE(Find(CheckInvariants(outcome), "cap").holds);
  result.steps.erase(result.steps.begin() + 5);
  EXPECT_TRUE(Find(CheckInvariants(outcome), "cap").holds);
  result.most_active_in_a_token = 7;
  EXPECT_TRUE(Says(Find(CheckInvariants(outcome), "cap").detail,
                   "at most 7 of 6 allowed over the run"));
}

TEST(Invariants, ActiveParametersOfSparseRowsMustGrow) {
  GridOutcome outcome = ExampleOutcome();
  const Invariant good =
      Find(CheckInvariants(outcome), "sparse_active_parameters");
  EXPECT_TRUE(Says(good.detail, "1: "));
  RunOf(outcome, "sparse-2").result->final_validation.active_experts = 1;
  EXPECT_FALSE(
      Find(CheckInvariants(outcome), "sparse_active_parameters").holds);
}

TEST(Invariants, ActiveParametersOfEverySeedMustGrow) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  EXPECT_TRUE(Find(CheckInvariants(outcome), "sparse_active_parameters").holds);
  // Changes the first seed of the row; the second stays intact.
  RunOf(outcome, "sparse-2").result->final_validation.active_experts = 1;
  EXPECT_FALSE(
      Find(CheckInvariants(outcome), "sparse_active_parameters").holds);
}

// Corpora may differ in vocabulary and rows in width: one expert of a large
// model may have more parameters than two of a small one.
TEST(Invariants, ActiveParametersAreComparedAmongModelsOfOneSize) {
  const GridOutcome small = ExampleOutcome();
  GridOutcome outcome = small;
  RunOf(outcome, "sparse-1").run.config.model.vocab_size *= 1000;
  for (const Invariant& invariant : CheckInvariants(outcome)) {
    EXPECT_NE(invariant.id, "sparse_active_parameters");  // one k of each size
  }
  for (RunOutcome& run : outcome.runs) {
    run.run.config.model = small.runs.front().run.config.model;
    run.run.config.model.vocab_size *= 1000;
  }
  outcome.runs.insert(outcome.runs.end(), small.runs.begin(), small.runs.end());
  const auto invariant = [&] {
    return Find(CheckInvariants(outcome), "sparse_active_parameters");
  };
  EXPECT_TRUE(invariant().holds) << invariant().detail;
  EXPECT_TRUE(Says(invariant().detail, "1: ", ", 2: ", "; 1: "));
  // RunOf finds the run of the large model, which comes first.
  RunOf(outcome, "sparse-2").result->final_validation.active_experts = 1;
  EXPECT_FALSE(invariant().holds);
}

TEST(Invariants, ResultsThatLackStepsOrLayersConfirmNothing) {
  const std::vector<std::function<void(trainer::RunResult&)>> losses = {
      [](auto& r) { r.steps.clear(); },
      [](auto& r) { r.allocation.pop_back(); },
      [](auto& r) { r.steps[5].allocation.clear(); },
      [](auto& r) { r.steps[5].layer_active_experts.clear(); },
      [](auto& r) { r.final_validation.active_histogram.clear(); },
      [](auto& r) { r.at_schedule_temperature.tokens_per_expert.pop_back(); }};
  for (const auto& lose : losses) {
    GridOutcome outcome = ExampleOutcome();
    lose(*RunOf(outcome, "soft-2").result);
    const std::vector<Invariant> invariants = CheckInvariants(outcome);
    for (const char* id : {"allocation_sum", "allocation_floor", "cap",
                           "finite_losses", "loss_falls", "counts_add_up"}) {
      const Invariant& invariant = Find(invariants, id);
      EXPECT_FALSE(invariant.holds) << id;
      EXPECT_TRUE(Says(invariant.detail, "soft-2")) << id;
    }
    EXPECT_TRUE(Find(invariants, "sparse_exactly_k").holds);
  }
}

// The first ten points of a record are the first ten steps.
TEST(Invariants, LossFallsByStepsAndNotByPoints) {
  GridOutcome outcome = ExampleOutcome();
  std::vector<trainer::StepRecord>& steps =
      RunOf(outcome, "soft-2").result->steps;
  steps.resize(5);
  const int64_t at[] = {1, 2, 100, 900, 1000};
  const double loss[] = {9, 9, 3, 1, 4};
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = at[i];
    steps[i].loss = loss[i];
  }
  const Invariant falls = Find(CheckInvariants(outcome), "loss_falls");
  EXPECT_FALSE(falls.holds);  // 2 steps at 9 and 98 at 3; 100 at 4
  EXPECT_TRUE(Says(falls.detail, "3.1200 -> 4.0000"));
}

TEST(Invariants, SayOfWhichStepsTheyAre) {
  GridOutcome outcome = ExampleOutcome();
  EXPECT_TRUE(Says(Find(CheckInvariants(outcome), "finite_losses").detail,
                   ": 40 steps and two validations"));
  for (RunOutcome& run : outcome.runs) {
    std::erase_if(run.result->steps, [](const auto& step) {
      return step.step > 10 && step.step % 7 != 5;
    });
  }
  // 1 to 10, and 12, 19, 26, 33, 40.
  EXPECT_TRUE(Says(Find(CheckInvariants(outcome), "finite_losses").detail,
                   ": 15 of 40 steps, those recorded, and two validations"));
}

TEST(Invariants, WhatWasNotSeenIsNotConfirmed) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "soft-2"), "score is NaN");
  const std::vector<Invariant> invariants = CheckInvariants(outcome);
  const Invariant& finished = Find(invariants, "rows_finished");
  EXPECT_FALSE(finished.holds);
  EXPECT_TRUE(Says(finished.detail, "3 of 4", "soft-2/seed1234 failed"));
  // soft-2 was the only row with a learned allocation.
  EXPECT_FALSE(Find(invariants, "allocation_sum").holds);
  EXPECT_TRUE(Find(invariants, "finite_losses").holds);

  for (RunOutcome& run : outcome.runs) Interrupt(run);
  for (const Invariant& invariant : CheckInvariants(outcome)) {
    EXPECT_FALSE(invariant.holds) << invariant.id;
  }
}

TEST(Invariants, RowsThatNobodyAskedForOweNothing) {
  GridOutcome outcome = ExampleOutcome();
  for (const char* row : {"soft-2", "star-1.5", "sparse-2"}) {
    Interrupt(RunOf(outcome, row));
    RunOf(outcome, row).selected = false;
  }
  const std::vector<Invariant> invariants = CheckInvariants(outcome);
  EXPECT_TRUE(AllHold(invariants)) << DescribeInvariants(invariants);
  EXPECT_EQ(Find(invariants, "rows_finished").detail, "1 of 1");
  RunOf(outcome, "soft-2").selected = true;
  EXPECT_FALSE(AllHold(CheckInvariants(outcome)));
}

TEST(Invariants, OfRoutersThatTheGridLacksAreLeftOut) {
  GridOutcome outcome = ExampleOutcome();
  outcome.runs.resize(1);  // sparse-1
  for (const Invariant& invariant : CheckInvariants(outcome)) {
    EXPECT_NE(invariant.id, "allocation_sum");
    EXPECT_NE(invariant.id, "allocation_floor");
    EXPECT_NE(invariant.id, "sparse_active_parameters");
    EXPECT_TRUE(invariant.holds) << invariant.id;
  }
}

TEST(Invariants, AreDescribedALineEach) {
  GridOutcome outcome = ExampleOutcome();
  RunOf(outcome, "sparse-1").result->steps[0].loss = HUGE_VAL;
  const std::string text = DescribeInvariants(CheckInvariants(outcome));
  EXPECT_TRUE(Says(text, "PASS  k_l >= 1", "FAIL  every loss is finite"));
}

}  // namespace
}  // namespace softmoe::experiments
