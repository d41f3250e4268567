// SPDX-License-Identifier: Apache-2.0
#include "optimized/allocation.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/step.h"

namespace softmoe::optimized {
namespace {

Config MakeConfig(RouterKind kind, double mean_active, int64_t num_layers,
                  int64_t num_experts) {
  Config config;
  config.model.num_layers = num_layers;
  config.model.num_experts = num_experts;
  config.router.kind = kind;
  config.router.mean_active_experts = mean_active;
  config.router.expansion_factor = 2.0;
  return config;
}

TEST(Allocation, SparseTakesExactlyKWithoutCutoff) {
  for (const int k : {1, 2, 3, 4}) {
    const Config config = MakeConfig(RouterKind::kSparse, k, 3, 8);
    for (const LayerAllocation& a : ComputeAllocations(config, {}, 1.5)) {
      EXPECT_EQ(a.max_active, k);
      EXPECT_EQ(a.balance_top, k);
      EXPECT_EQ(a.cutoff, 0.0);
    }
    EXPECT_EQ(LargestTotalActive(config), 3 * k);
  }
}

// SPEC.md 6a N16: caps 4, 3, 4 for k = 1 (alpha 4), 1.5 and 2 (alpha 2).
TEST(Allocation, SoftFixedHasThePapersCaps) {
  struct Case {
    double k, alpha;
    int64_t cap;
  };
  for (const Case& c : {Case{1, 4, 4}, Case{1.5, 2, 3}, Case{2, 2, 4}}) {
    Config config = MakeConfig(RouterKind::kSoftFixed, c.k, 10, 32);
    config.router.expansion_factor = c.alpha;
    const auto allocations = ComputeAllocations(config, {}, 1.2);
    ASSERT_EQ(allocations.size(), 10u);
    EXPECT_EQ(allocations[9].max_active, c.cap);
    EXPECT_EQ(allocations[9].cutoff, 1.2 * c.k / 32);
    EXPECT_EQ(allocations[9].balance_top, static_cast<int64_t>(std::ceil(c.k)));
  }
}

// 1 + 525 (1/105) is 6 + 2^-50.
TEST(Allocation, RoundingAddsNoExpert) {
  Config config = MakeConfig(RouterKind::kSoftLearned, 6, 105, 32);
  config.router.expansion_factor = 1;
  const std::vector<float> logits(105);
  const LayerAllocation a = ComputeAllocations(config, logits, 1.0).front();
  EXPECT_GT(a.mean_active, 6);
  EXPECT_EQ(a.max_active, 6);
  EXPECT_EQ(a.balance_top, 6);
}

// Ruling 5: rounding of k_l must not cost or grant an expert.
TEST(Allocation, CapForgivesRounding) {
  const Config config = MakeConfig(RouterKind::kSoftFixed, 1.5 + 4e-7, 2, 8);
  EXPECT_EQ(ComputeAllocations(config, {}, 1.0)[0].max_active, 3);
  const Config more = MakeConfig(RouterKind::kSoftFixed, 1.5 + 6e-7, 2, 8);
  EXPECT_EQ(ComputeAllocations(more, {}, 1.0)[0].max_active, 4);
}

// At most, all that is to spare goes to one layer, 1 + 2; all caps together are
// at most twice the budget of 6, and one more in each layer.
TEST(Allocation, BoundsWhatLayersMayGet) {
  const Config config = MakeConfig(RouterKind::kSoftLearned, 1.5, 4, 32);
  EXPECT_EQ(SpareBudget(config), 2);
  EXPECT_EQ(LargestMaxActive(config), 2 * 3);
  EXPECT_EQ(LargestTotalActive(config), 2 * 6 + 4);
}

// Exponentials of such logits are infinite.
TEST(Allocation, SharesTheBudgetByLargeLogits) {
  const std::vector<float> logits = {800, 800};
  EXPECT_EQ(BudgetShares(logits), (std::vector<double>{0.5, 0.5}));
}

TEST(Allocation, NamesTheLayerOfABadBudgetLogit) {
  const Config config = MakeConfig(RouterKind::kSoftLearned, 1.5, 3, 8);
  const std::vector<float> logits = {
      0.0f, std::numeric_limits<float>::quiet_NaN(), 0.0f};
  EXPECT_TRUE(Says(MessageOf<DivergedError>(
                       [&] { ComputeAllocations(config, logits, 1.0); }),
                   "layer 1"));
}

// SPEC.md 1.5, law 18; and the bound that sizes the workspace.
RC_GTEST_PROP(Allocation, SumsToTheBudgetAndStaysWithinItsBounds, ()) {
  const int64_t num_layers = *rc::gen::inRange<int64_t>(1, 13);
  const int64_t num_experts = *rc::gen::inRange<int64_t>(2, 65);
  const double spare = *rc::gen::inRange(0, 1001) / 1000.0;
  const double k = 1.0 + spare * static_cast<double>(num_experts - 1);
  Config config =
      MakeConfig(RouterKind::kSoftLearned, k, num_layers, num_experts);
  config.router.expansion_factor = *rc::gen::inRange(1, 9) / 2.0;
  std::vector<float> logits;
  for (int64_t l = 0; l < num_layers; ++l) {
    logits.push_back(static_cast<float>(*rc::gen::inRange(-500, 501)) / 50);
  }
  const auto allocations = ComputeAllocations(config, logits, 1.0);
  double sum = 0;
  int64_t caps = 0;
  for (const LayerAllocation& a : allocations) {
    RC_ASSERT(a.mean_active >= 1.0);
    RC_ASSERT(a.max_active >= 1);
    RC_ASSERT(a.max_active <= std::min(num_experts, LargestMaxActive(config)));
    sum += a.mean_active;
    caps += a.max_active;
  }
  RC_ASSERT(caps <= LargestTotalActive(config));
  // Each share carries at most L + 3 roundings (exp, sum, division), each
  // k_l two more, the sum L: all relative to sums of at most K.
  const double budget = k * static_cast<double>(num_layers);
  RC_ASSERT(std::abs(sum - budget) <=
            (3.0 * static_cast<double>(num_layers) + 6) * 0x1p-53 * budget);
}

}  // namespace
}  // namespace softmoe::optimized
