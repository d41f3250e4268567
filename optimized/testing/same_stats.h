// SPDX-License-Identifier: Apache-2.0
//
// same_stats.h - whether two passes counted the same, bit for bit. For tests.
#ifndef SOFTMOE_OPTIMIZED_TESTING_SAME_STATS_H_
#define SOFTMOE_OPTIMIZED_TESTING_SAME_STATS_H_

#include <algorithm>

#include "optimized/step.h"

namespace softmoe::optimized {

inline bool SameStats(const StepStats& a, const StepStats& b) {
  return a.num_tokens == b.num_tokens && a.loss_sum == b.loss_sum &&
         std::ranges::equal(
             a.layers, b.layers, [](const LayerStats& x, const LayerStats& y) {
               return x.tokens_per_expert == y.tokens_per_expert &&
                      x.active_histogram == y.active_histogram &&
                      x.tokens_below_cutoff == y.tokens_below_cutoff &&
                      x.load_balance_loss == y.load_balance_loss &&
                      x.z_loss == y.z_loss;
             });
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_TESTING_SAME_STATS_H_
