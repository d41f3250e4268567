// SPDX-License-Identifier: Apache-2.0
//
// route_plan.h - sorts (token, expert) pairs by expert, then token.
#ifndef SOFTMOE_KERNELS_ROUTE_PLAN_H_
#define SOFTMOE_KERNELS_ROUTE_PLAN_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

struct BuildRoutePlanArgs {
  int64_t num_tokens, num_experts, max_active;
  const int32_t* num_active;  // [num_tokens]
  const int32_t* selected;    // [num_tokens, max_active], -1 from num_active on
  const float* gates;         // [num_tokens, max_active]
  int32_t* expert_offsets;    // [num_experts + 1]
  int32_t* row_token;         // [num_tokens * max_active], num_routed used
  float* row_gate;            // [num_tokens * max_active]
  int32_t* token_rows;        // [num_tokens, max_active]
  int32_t* scratch;           // [RoutePlanScratch(num_tokens, num_experts)]
};
SOFTMOE_DECLARE_KERNEL(BuildRoutePlan);

// d_gates = d_row_gate where a token has a row, 0 elsewhere: from the order of
// the experts' rows back to that of the router. Both lists of a token are in
// order of ascending expert.
struct GatherGateGradientsArgs {
  int64_t num_tokens, max_active;
  const int32_t* token_rows;  // [num_tokens, max_active], of BuildRoutePlan
  const float* d_row_gate;    // [num_routed]
  float* d_gates;             // [num_tokens, max_active], =
};
SOFTMOE_DECLARE_KERNEL(GatherGateGradients);
// The plan, on the host, says how many rows there are: as many as tokens have.
template <typename F>
void ForEachArray(GatherGateGradientsArgs& a, const F& f) {
  const int64_t slots = a.num_tokens * a.max_active;
  int64_t num_routed = 0;
  for (int64_t i = 0; i < slots; ++i) num_routed += a.token_rows[i] >= 0;
  f("token_rows", a.token_rows, slots);
  f("d_row_gate", a.d_row_gate, num_routed);
  f("d_gates", a.d_gates, slots);
}

inline constexpr int64_t kRoutePlanTokenBlock = 256;
constexpr int64_t RoutePlanScratch(int64_t num_tokens, int64_t num_experts) {
  return (num_tokens + kRoutePlanTokenBlock - 1) / kRoutePlanTokenBlock *
         num_experts;
}
template <typename F>
void ForEachArray(BuildRoutePlanArgs& a, const F& f) {
  const int64_t slots = a.num_tokens * a.max_active;
  f("num_active", a.num_active, a.num_tokens);
  f("selected", a.selected, slots);
  f("gates", a.gates, slots);
  f("expert_offsets", a.expert_offsets, a.num_experts + 1);
  f("row_token", a.row_token, slots);
  f("row_gate", a.row_gate, slots);
  f("token_rows", a.token_rows, slots);
  f("scratch", a.scratch, RoutePlanScratch(a.num_tokens, a.num_experts));
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ROUTE_PLAN_H_
