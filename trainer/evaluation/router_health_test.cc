// SPDX-License-Identifier: Apache-2.0
//
// Cases that random draws seldom meet, and refusals; everything else is
// compared with the reference by property_tests/routing_property_test.cc.
#include "trainer/evaluation/router_health.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/errors.h"
#include "optimized/communicator/communicator.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// The routing of one pass over a layer, with four experts if nothing else is
// said.
struct Layer {
  int64_t max_active;
  std::vector<float> soft_weights;  // [tokens, num_experts]
  std::vector<int32_t> selected;    // [tokens, max_active]
  int64_t below_cutoff = 0;
  int64_t num_experts = 4;
};

// Adds the layers as one group; counts follow from the selection.
void Add(const std::vector<Layer>& layers, RouterHealthTotals* totals) {
  optimized::StepStats stats;
  std::vector<optimized::RoutingView> views;
  for (const Layer& layer : layers) {
    stats.num_tokens =
        static_cast<int64_t>(layer.soft_weights.size()) / layer.num_experts;
    optimized::LayerStats counts;
    counts.tokens_below_cutoff = layer.below_cutoff;
    counts.tokens_per_expert.resize(layer.num_experts);
    counts.active_histogram.resize(layer.num_experts + 1);
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
  optimized::SingleCommunicator alone;
  totals->Add({&stats, 1}, views, alone);
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

TEST(RouterHealth, ASingleExpertIsEvenlyLoadedIfItHasTokens) {
  Config config = TinyConfig(RouterKind::kSoftFixed);
  config.model.num_experts = 1;
  for (const int32_t selected : {0, -1}) {
    RouterHealthTotals totals(config);
    const Layer layer = {.max_active = 1,
                         .soft_weights = {0.5},
                         .selected = {selected},
                         .num_experts = 1};
    Add({layer, layer}, &totals);
    for (const RouterHealth& health : totals.Get()) {
      EXPECT_EQ(health.relative_load_entropy, selected < 0 ? 0 : 1);
      EXPECT_EQ(health.dead_experts, selected < 0 ? 1 : 0);
    }
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
