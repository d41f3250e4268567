// SPDX-License-Identifier: Apache-2.0
#include "optimized/gather_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/errors.h"
#include "optimized/communicator/in_process.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

constexpr ModelConfig kModel = {.num_layers = 2, .num_experts = 3};

// Statistics in which all numbers differ.
StepStats Distinct(int64_t group) {
  double last = 1000 * static_cast<double>(group);
  const auto next = [&] { return static_cast<int64_t>(++last); };
  StepStats stats;
  stats.num_tokens = next();
  stats.loss_sum = ++last + 0.25;
  for (int64_t l = 0; l < kModel.num_layers; ++l) {
    LayerStats layer;
    for (int64_t e = 0; e < kModel.num_experts; ++e) {
      layer.tokens_per_expert.push_back(next());
    }
    for (int64_t n = 0; n <= kModel.num_experts; ++n) {
      layer.active_histogram.push_back(next());
    }
    layer.tokens_below_cutoff = next();
    layer.load_balance_loss = -++last / 7;
    layer.z_loss = std::sqrt(++last);
    stats.layers.push_back(layer);
  }
  return stats;
}

TEST(GatherStats, BringsEveryNumberOfEveryGroupToEveryRank) {
  constexpr int64_t kGroups = 2;  // on each rank
  for (const int ranks : {1, 2, 3}) {
    RunInProcessRanks(ranks, [&](Communicator& communicator) {
      std::vector<StepStats> own;
      for (int64_t g = 0; g < kGroups; ++g) {
        own.push_back(Distinct(communicator.rank() * kGroups + g));
      }
      const std::vector<StepStats> all = GatherStats(own, kModel, communicator);
      SOFTMOE_CHECK(all.size() == static_cast<size_t>(ranks * kGroups));
      for (size_t g = 0; g < all.size(); ++g) {
        SOFTMOE_CHECK(SameStats(all[g], Distinct(static_cast<int64_t>(g))))
            << "group " << g;
      }
    });
  }
}

TEST(GatherStats, RefusesStatisticsOfAnotherModel) {
  const StepStats own[] = {Distinct(0)};
  ModelConfig other = kModel;
  other.num_experts = 4;
  EXPECT_THROW(RunInProcessRanks(
                   2, [&](Communicator& c) { GatherStats(own, other, c); }),
               InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
