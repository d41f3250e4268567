// SPDX-License-Identifier: Apache-2.0
#include "experiments/invariants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "experiments/report_test_util.h"

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

// Each one is broken in one way, by one run: it alone fails, and names the run.
struct Break {
  const char* id;    // of the invariant
  const char* row;   // of the run that is changed
  const char* says;  // part of the detail
  std::function<void(trainer::RunResult&)> change;
};

std::vector<Break> Breaks() {
  using R = trainer::RunResult;
  const double kNaN = std::numeric_limits<double>::quiet_NaN();
  return {
      {"allocation_sum", "soft-2", "K = 6",
       // One unit in the last place of K is more than L + 4 roundings of 6.
       [](R& r) { r.allocation[0] += 6 * 0x1p-47; }},
      {"allocation_sum", "soft-2", "nan",
       [kNaN](R& r) { r.allocation[1] = kNaN; }},
      {"allocation_floor", "star-1.5", "0.9999",
       [](R& r) { r.allocation[2] = 0.9999; }},
      {"cap", "sparse-2", "at most 3 of 2 allowed",
       [](R& r) { r.most_active_in_a_token = 3; }},
      {"sparse_exactly_k", "sparse-2", "k = 2",
       [](R& r) { r.train_active_experts = std::nextafter(2.0, 3.0); }},
      {"finite_losses", "sparse-1", "in step 7",
       [kNaN](R& r) { r.steps[6].z_loss = kNaN; }},
      {"loss_falls", "star-1.5", "->",
       [](R& r) {
         for (auto& step : r.steps) step.loss = 4;
       }},
      {"below_unigram", "soft-2", "against",
       [](R& r) { r.unigram_loss = r.final_validation.loss + 0.2999; }},
      {"counts_add_up", "sparse-1", "layer 1",
       [](R& r) { r.final_validation.tokens_per_expert[1][0] += 1; }},
      {"counts_add_up", "sparse-1", "layer 2",
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
    EXPECT_NE(invariant.detail.find(run.run.id), std::string::npos)
        << invariant.detail;
    EXPECT_NE(invariant.detail.find(broken.says), std::string::npos)
        << invariant.detail;
    for (const Invariant& other : invariants) {
      if (other.id == broken.id) continue;
      // A NaN in the allocation has no floor either.
      EXPECT_TRUE(other.holds || std::string(broken.says) == "nan")
          << broken.id << " also breaks " << other.id << ": " << other.detail;
    }
    EXPECT_FALSE(AllHold(invariants));
  }
}

TEST(Invariants, HistogramsCountForTheCap) {
  GridOutcome outcome = ExampleOutcome();
  auto& result = *RunOf(outcome, "sparse-1").result;
  // Moves a token of validation to three experts, and keeps the sums.
  result.final_validation.active_histogram[0][1] -= 1;
  result.final_validation.active_histogram[0][3] += 1;
  result.final_validation.tokens_per_expert[0][0] += 2;
  EXPECT_FALSE(Find(CheckInvariants(outcome), "cap").holds);
}

TEST(Invariants, ActiveParametersOfSparseRowsMustGrow) {
  GridOutcome outcome = ExampleOutcome();
  const Invariant good =
      Find(CheckInvariants(outcome), "sparse_active_parameters");
  EXPECT_NE(good.detail.find("1: "), std::string::npos) << good.detail;
  RunOf(outcome, "sparse-2").result->final_validation.active_experts = 1;
  EXPECT_FALSE(
      Find(CheckInvariants(outcome), "sparse_active_parameters").holds);
}

TEST(Invariants, WhatWasNotSeenIsNotConfirmed) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "soft-2"), "score is NaN");
  const std::vector<Invariant> invariants = CheckInvariants(outcome);
  const Invariant& finished = Find(invariants, "rows_finished");
  EXPECT_FALSE(finished.holds);
  EXPECT_NE(finished.detail.find("3 of 4"), std::string::npos);
  EXPECT_NE(finished.detail.find("soft-2/seed1234 failed"), std::string::npos);
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
  EXPECT_NE(text.find("PASS  k_l >= 1"), std::string::npos) << text;
  EXPECT_NE(text.find("FAIL  every loss is finite"), std::string::npos) << text;
}

}  // namespace
}  // namespace softmoe::experiments
