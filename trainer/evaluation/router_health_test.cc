// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/router_health.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

TEST(LoadEntropy, IsThatOfTheShares) {
  // Shares 1/2, 1/4, 1/4: 1/2 ln 2 + 2/4 ln 4, to fewer than 8 roundings.
  EXPECT_NEAR(LoadEntropy(std::vector<int64_t>{4, 0, 2, 2}),
              1.5 * std::log(2.0), 8 * kDoubleUnit);
  EXPECT_EQ(LoadEntropy(std::vector<int64_t>{0, 7, 0}), 0);
  EXPECT_EQ(LoadEntropy(std::vector<int64_t>{0, 0}), 0);
}

// The routing of one pass over a layer with four experts.
struct Layer {
  int64_t max_active;
  std::vector<float> soft_weights;  // [tokens, 4]
  std::vector<int32_t> selected;    // [tokens, max_active]
  int64_t below_cutoff = 0;
};

// Adds the layers as one group; counts follow from the selection.
void Add(const std::vector<Layer>& layers, RouterHealthTotals* totals) {
  optimized::StepStats stats;
  std::vector<optimized::RoutingView> views;
  for (const Layer& layer : layers) {
    stats.num_tokens = static_cast<int64_t>(layer.soft_weights.size()) / 4;
    optimized::LayerStats counts{.tokens_per_expert = {0, 0, 0, 0},
                                 .active_histogram = {0, 0, 0, 0, 0},
                                 .tokens_below_cutoff = layer.below_cutoff};
    for (int64_t t = 0; t < stats.num_tokens; ++t) {
      int active = 0;
      for (int64_t i = 0; i < layer.max_active; ++i) {
        const int32_t expert = layer.selected[t * layer.max_active + i];
        if (expert < 0) continue;
        ++counts.tokens_per_expert[expert];
        ++active;
      }
      ++counts.active_histogram[active];
    }
    stats.layers.push_back(counts);
    optimized::RoutingView view;
    view.max_active = layer.max_active;
    view.soft_weights = layer.soft_weights;
    view.selected = layer.selected;
    views.push_back(view);
  }
  totals->Add(stats, views);
}

// Two groups of two tokens and one, in two layers with caps of 2 and 3.
TEST(RouterHealth, IsCountedByHand) {
  RouterHealthTotals totals(TinyConfig(RouterKind::kSoftFixed));
  Add({{.max_active = 2,
        .soft_weights = {0.5, 0.25, 0.5, 0.25,  //
                         0.75, 0.5, 0.125, 0.125},
        .selected = {0, 2, 0, -1}},
       {.max_active = 3,
        .soft_weights = {0.5, 0.5, 0.5, 0, 0.25, 0.5, 0.5, 0.25},
        .selected = {0, 1, 2, 1, 2, -1}}},
      &totals);
  Add({{.max_active = 2,
        .soft_weights = {0.25, 0.5, 0.5, 0.25},
        .selected = {-1, -1},
        .below_cutoff = 1},
       {.max_active = 3,
        .soft_weights = {0.375, 0.375, 0.375, 0.375},
        .selected = {0, 1, 2}}},
      &totals);
  const std::vector<RouterHealth> health = totals.Get();
  ASSERT_EQ(health.size(), 2u);

  // Loads 2, 0, 1, 0: shares 2/3 and 1/3, to fewer than 8 roundings.
  const double entropy = std::log(3.0) - 2.0 / 3 * std::log(2.0);
  EXPECT_NEAR(health[0].load_entropy, entropy, 8 * kDoubleUnit);
  EXPECT_NEAR(health[0].relative_load_entropy, entropy / std::log(4.0),
              8 * kDoubleUnit);
  EXPECT_EQ(health[0].dead_experts, 2);
  EXPECT_EQ(health[0].at_cap_fraction, 1.0 / 3);
  EXPECT_EQ(health[0].zero_active_fraction, 1.0 / 3);
  // 0.5, then 0.75, then all of 1.5.
  EXPECT_EQ(health[0].truncated_mass, (0.5 + 0.75 + 1.5) / 3);

  EXPECT_EQ(health[1].dead_experts, 1);  // loads 2, 3, 3, 0
  EXPECT_EQ(health[1].at_cap_fraction, 2.0 / 3);
  EXPECT_EQ(health[1].zero_active_fraction, 0);
  EXPECT_EQ(health[1].truncated_mass, (0 + 0.5 + 0.375) / 3);
}

TEST(RouterHealth, AnExpertByTheFallbackIsNotTheCapReached) {
  Config config = TinyConfig(RouterKind::kSoftFixed);
  config.router.fallback = Fallback::kTop1;
  RouterHealthTotals totals(config);
  // The second token gets its expert from the fallback.
  const Layer layer = {.max_active = 1,
                       .soft_weights = {0.5, 0.25, 0.125, 0.125,  //
                                        0.25, 0.25, 0.25, 0.25},
                       .selected = {0, 0},
                       .below_cutoff = 1};
  Add({layer, layer}, &totals);
  for (const RouterHealth& health : totals.Get()) {
    EXPECT_EQ(health.at_cap_fraction, 0.5);
    EXPECT_EQ(health.zero_active_fraction, 0.5);
    EXPECT_EQ(health.truncated_mass, (0.5 + 0.75) / 2);
    EXPECT_EQ(health.load_entropy, 0);
    EXPECT_EQ(health.dead_experts, 3);
  }
}

TEST(RouterHealth, OfTheSparseRouterHasNoTruncatedMass) {
  RouterHealthTotals totals(TinyConfig(RouterKind::kSparse));
  const Layer layer = {.max_active = 2,
                       .soft_weights = {0.5, 0.25, 0.125, 0.125,  //
                                        0.125, 0.125, 0.25, 0.5},
                       .selected = {0, 1, 2, 3}};
  Add({layer, layer}, &totals);
  for (const RouterHealth& health : totals.Get()) {
    EXPECT_FALSE(health.truncated_mass.has_value());
    EXPECT_EQ(health.at_cap_fraction, 1);
    EXPECT_EQ(health.zero_active_fraction, 0);
    EXPECT_NEAR(health.relative_load_entropy, 1, 8 * kDoubleUnit);
  }
}

TEST(RouterHealth, RefusesOtherShapesAndNoTokens) {
  RouterHealthTotals totals(TinyConfig(RouterKind::kSoftFixed));
  EXPECT_THROW(totals.Get(), InternalError);
  Layer layer = {
      .max_active = 1, .soft_weights = {1, 0, 0, 0}, .selected = {0}};
  EXPECT_THROW(Add({layer}, &totals), InternalError);
  Add({layer, layer}, &totals);
  layer = {
      .max_active = 2, .soft_weights = {0.5, 0.5, 0, 0}, .selected = {0, 1}};
  EXPECT_THROW(Add({layer, layer}, &totals), InternalError);
}

}  // namespace
}  // namespace softmoe::trainer
