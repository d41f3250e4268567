// SPDX-License-Identifier: Apache-2.0
//
// routing_counts.h - how many experts the tokens of a group got: what the
// metrics of SPEC.md 5.2 are made of. Integers, so any order is right. And
// which score was not finite, since nothing else that is read once a step says.
#ifndef SOFTMOE_KERNELS_ROUTING_COUNTS_H_
#define SOFTMOE_KERNELS_ROUTING_COUNTS_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

struct RoutingCountsArgs {
  int64_t num_tokens, num_experts, max_active;
  bool has_cutoff;            // soft routers
  float cutoff;               // tau*k_l/num_experts; not read without
  const int32_t* num_active;  // [num_tokens], of RouterForward
  const float* gates;         // [num_tokens, max_active], of RouterForward
  int64_t* active_histogram;  // [num_experts + 1]  tokens by num_active, =
  int64_t* below_cutoff;      // [1]  tokens of which no weight exceeds the
                              // cutoff, with or without a fallback, =; 0
                              // without a cutoff
  // All three may be null.
  const float* scores = nullptr;       // [num_tokens, num_experts]
  const int64_t* bad_score = nullptr;  // [1], of RouterForward
  double* bad_value = nullptr;         // [1]  that score; 0 if there is none, =
};
SOFTMOE_DECLARE_KERNEL(RoutingCounts);
template <typename F>
void ForEachArray(RoutingCountsArgs& a, const F& f) {
  f("num_active", a.num_active, a.num_tokens);
  f("gates", a.gates, a.num_tokens * a.max_active);
  f("active_histogram", a.active_histogram, a.num_experts + 1);
  f("below_cutoff", a.below_cutoff, 1);
  f("scores", a.scores, a.num_tokens * a.num_experts);
  f("bad_score", a.bad_score, 1);
  f("bad_value", a.bad_value, 1);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ROUTING_COUNTS_H_
