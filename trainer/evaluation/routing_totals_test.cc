// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/routing_totals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

using optimized::LayerStats;
using optimized::StepStats;

TEST(LoadVariance, ReadsTheSameCountsThreeWays) {
  // Mean 4, deviations -3, -1, 1, 3: variance 5. All exact in double.
  const std::vector<int64_t> tokens = {1, 3, 5, 7};
  const LoadVariance variance = ComputeLoadVariance(tokens);
  EXPECT_EQ(variance.relative, 5.0 / 16.0);
  EXPECT_EQ(variance.cv, std::sqrt(5.0) / 4.0);
  EXPECT_EQ(variance.var_over_mean, 5.0 / 4.0);
}

TEST(LoadVariance, IsZeroForEqualAndForEmptyLoads) {
  EXPECT_EQ(ComputeLoadVariance(std::vector<int64_t>{7, 7, 7}).relative, 0.0);
  const LoadVariance none = ComputeLoadVariance(std::vector<int64_t>{0, 0, 0});
  EXPECT_EQ(none.relative, 0.0);
  EXPECT_EQ(none.cv, 0.0);
  EXPECT_EQ(none.var_over_mean, 0.0);
}

TEST(LoadVariance, OneBusyExpertOfEHasVarianceEMinusOne) {
  // n = (N, 0, ..., 0): mean N/E, var/mean^2 = E - 1.
  EXPECT_EQ(ComputeLoadVariance(std::vector<int64_t>{12, 0, 0, 0}).relative,
            3.0);
}

// Two layers, two experts, `tokens` tokens.
StepStats Stats(int64_t tokens, double loss_sum,
                std::vector<std::vector<int64_t>> histograms,
                std::vector<std::vector<int64_t>> loads, double balance,
                double z) {
  StepStats stats;
  stats.num_tokens = tokens;
  stats.loss_sum = loss_sum;
  for (size_t layer = 0; layer < histograms.size(); ++layer) {
    stats.layers.push_back(
        LayerStats{.tokens_per_expert = loads[layer],
                   .active_histogram = histograms[layer],
                   .tokens_below_cutoff = histograms[layer][0],
                   .load_balance_loss = balance,
                   .z_loss = z});
  }
  return stats;
}

TEST(RoutingTotals, AddsGroups) {
  RoutingTotals totals(2, 2);
  totals.Add(Stats(4, 8.0, {{1, 2, 1}, {0, 4, 0}}, {{3, 1}, {4, 0}}, 0.5, 1));
  totals.Add(Stats(4, 4.0, {{0, 4, 0}, {2, 2, 0}}, {{1, 3}, {0, 2}}, 1.0, 3));
  EXPECT_EQ(totals.num_groups(), 2);
  EXPECT_EQ(totals.num_tokens(), 8);
  EXPECT_EQ(totals.MeanLoss(), 12.0 / 8.0);
  // Two layers per group; mean of (1, 2) and of (2, 6).
  EXPECT_EQ(totals.LoadBalanceLoss(), 1.5);
  EXPECT_EQ(totals.ZLoss(), 4.0);
  // Layer 0: 4 + 4 active in 8 tokens; layer 1: 4 + 2.
  EXPECT_EQ(totals.LayerActive(), (std::vector<double>{1.0, 0.75}));
  EXPECT_EQ(totals.MeanActive(), 14.0 / 16.0);
  EXPECT_EQ(totals.ZeroActiveFraction(), 3.0 / 16.0);
  EXPECT_EQ(totals.MostActive(), 2);
  EXPECT_EQ(totals.active_histogram()[0], (std::vector<int64_t>{1, 6, 1}));
  EXPECT_EQ(totals.tokens_per_expert()[1], (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(totals.LayerLoadVariance()[0].relative, 0.0);
  EXPECT_EQ(totals.LayerLoadVariance()[1].relative, 1.0 / 9.0);
}

// Every token counts alike: the mean of the groups' means would be 1.5.
TEST(RoutingTotals, GroupsOfUnequalSizeWeighByTheirTokens) {
  RoutingTotals totals(1, 2);
  totals.Add(Stats(6, 6.0, {{0, 6, 0}}, {{3, 3}}, 0, 0));
  totals.Add(Stats(2, 4.0, {{0, 2, 0}}, {{1, 1}}, 0, 0));
  EXPECT_EQ(totals.MeanLoss(), 10.0 / 8.0);
}

TEST(RoutingTotals, RefusesAnotherShape) {
  RoutingTotals totals(2, 2);
  EXPECT_THROW(totals.Add(Stats(4, 0, {{4, 0, 0}}, {{0, 0}}, 0, 0)),
               InternalError);
  EXPECT_THROW(
      totals.Add(Stats(4, 0, {{4, 0}, {4, 0}}, {{0, 0}, {0, 0}}, 0, 0)),
      InternalError);
}

}  // namespace
}  // namespace softmoe::trainer
