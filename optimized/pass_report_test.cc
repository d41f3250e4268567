// SPDX-License-Identifier: Apache-2.0
#include "optimized/pass_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace softmoe::optimized {
namespace {

using Counts = std::vector<int64_t>;

constexpr int64_t kLayers = 2, kExperts = 3;

// Every place of every layer holds a number of its own, so places that overlap
// show.
void Fill(const PassReport& report, int64_t pass) {
  for (int64_t l = 0; l < kLayers; ++l) {
    const LayerReport layer = report.Layer(pass, l);
    const int64_t first = 1000 * pass + 100 * l;
    const double number = static_cast<double>(10 * pass + l);
    const auto fill = [&](int64_t* counts, int64_t size, int64_t value) {
      std::generate_n(counts, size, [&] { return first + value++; });
    };
    fill(layer.tokens_per_expert, kExperts, 1);
    fill(layer.balance_counts, kExperts, 11);
    fill(layer.active_histogram, kExperts + 1, 21);
    fill(layer.tokens_below_cutoff, 1, 31);
    fill(layer.bad_score, 1, 41);
    *layer.bad_value = number;
    *layer.load_balance_loss = number + 0.25;
    *layer.z_loss = number + 0.5;
    *layer.d_mean_active = number + 0.75;
  }
  *report.loss_sum(pass) = static_cast<double>(pass) + 7;
}

void Expect(const PassReport& report, int64_t pass) {
  const StepStats stats = report.Read(pass, 12);
  EXPECT_EQ(stats.num_tokens, 12);
  EXPECT_EQ(stats.loss_sum, static_cast<double>(pass) + 7);
  ASSERT_EQ(stats.layers.size(), kLayers);
  for (int64_t l = 0; l < kLayers; ++l) {
    const int64_t first = 1000 * pass + 100 * l;
    const double number = static_cast<double>(10 * pass + l);
    const LayerStats& layer = stats.layers[l];
    EXPECT_EQ(layer.tokens_per_expert,
              (Counts{first + 1, first + 2, first + 3}));
    EXPECT_EQ(layer.active_histogram,
              (Counts{first + 21, first + 22, first + 23, first + 24}));
    EXPECT_EQ(layer.tokens_below_cutoff, first + 31);
    EXPECT_EQ(layer.load_balance_loss, number + 0.25);
    EXPECT_EQ(layer.z_loss, number + 0.5);
    const auto counts = report.balance_counts(pass, l);
    EXPECT_EQ(Counts(counts.begin(), counts.end()),
              (Counts{first + 11, first + 12, first + 13}));
    EXPECT_EQ(*report.FetchedLayer(pass, l).bad_score, first + 41);
    EXPECT_EQ(*report.FetchedLayer(pass, l).bad_value, number);
    EXPECT_EQ(report.d_mean_active(pass)[l], number + 0.75);
  }
}

TEST(PassReport, KeepsPassesAndLayersApart) {
  constexpr int64_t kPasses = 3;
  ThreadPool pool(1);
  PassReport report(ModelConfig{.num_layers = kLayers, .num_experts = kExperts},
                    kPasses);
  EXPECT_EQ(report.num_passes(), kPasses);
  for (int64_t pass = 0; pass < kPasses; ++pass) Fill(report, pass);
  report.StartFetch(pool, kPasses);
  for (int64_t pass = 0; pass < kPasses; ++pass) Expect(report, pass);
}

}  // namespace
}  // namespace softmoe::optimized
