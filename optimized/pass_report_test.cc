// SPDX-License-Identifier: Apache-2.0
#include "optimized/pass_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace softmoe::optimized {
namespace {

using Counts = std::vector<int64_t>;

// Every place of every layer holds a number of its own, so places that overlap
// show.
TEST(PassReport, KeepsTheLayersApart) {
  constexpr int64_t kLayers = 2, kExperts = 3;
  ThreadPool pool(1);
  PassReport report(kLayers, kExperts);
  for (int64_t l = 0; l < kLayers; ++l) {
    const LayerReport layer = report.Layer(l);
    const auto fill = [&](int64_t* counts, int64_t size, int64_t value) {
      std::generate_n(counts, size, [&] { return 100 * l + value++; });
    };
    fill(layer.tokens_per_expert, kExperts, 1);
    fill(layer.balance_counts, kExperts, 11);
    fill(layer.active_histogram, kExperts + 1, 21);
    fill(layer.tokens_below_cutoff, 1, 31);
    fill(layer.bad_score, 1, 41);
    *layer.load_balance_loss = static_cast<double>(l) + 0.25;
    *layer.z_loss = static_cast<double>(l) + 0.5;
    *layer.d_mean_active = static_cast<double>(l) + 0.75;
  }
  *report.loss_sum() = 7;

  report.Fetch(pool);
  const StepStats stats = report.Read(12);
  EXPECT_EQ(stats.num_tokens, 12);
  EXPECT_EQ(stats.loss_sum, 7);
  ASSERT_EQ(stats.layers.size(), kLayers);
  for (int64_t l = 0; l < kLayers; ++l) {
    const int64_t first = 100 * l;
    const LayerStats& layer = stats.layers[l];
    EXPECT_EQ(layer.tokens_per_expert,
              (Counts{first + 1, first + 2, first + 3}));
    EXPECT_EQ(layer.active_histogram,
              (Counts{first + 21, first + 22, first + 23, first + 24}));
    EXPECT_EQ(layer.tokens_below_cutoff, first + 31);
    EXPECT_EQ(layer.load_balance_loss, static_cast<double>(l) + 0.25);
    EXPECT_EQ(layer.z_loss, static_cast<double>(l) + 0.5);
    const auto counts = report.balance_counts(l);
    EXPECT_EQ(Counts(counts.begin(), counts.end()),
              (Counts{first + 11, first + 12, first + 13}));
    EXPECT_EQ(*report.FetchedLayer(l).bad_score, first + 41);
  }
  EXPECT_EQ(report.ReadMeanActiveGradients(),
            (std::vector<double>{0.75, 1.75}));
}

}  // namespace
}  // namespace softmoe::optimized
