// SPDX-License-Identifier: Apache-2.0
//
// expert_mlp.h - the SwiGLU experts of one MoE layer over routed rows.
//
//   E_i(x) = (SiLU(x G_i) * (x U_i)) D_i          SPEC.md 3.2
//   out_t  = sum over the rows r of token t of gate_r * E_i(x_t)
//
// Rows are sorted by expert, then token; expert i owns rows [expert_offsets[i],
// expert_offsets[i+1]). No padding, no capacity, no dropped token. The gate
// multiplies the hidden activation, which is the same since nothing has a bias.
#ifndef SOFTMOE_KERNELS_EXPERT_MLP_H_
#define SOFTMOE_KERNELS_EXPERT_MLP_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

// Which token each row belongs to, and where each token's rows are; made by
// BuildRoutePlan (route_plan.h).
struct RoutePlan {
  int64_t num_tokens, num_experts, num_routed, max_active;
  const int32_t* expert_offsets;  // [num_experts + 1]
  const int32_t* row_token;       // [num_routed]
  const float* row_gate;          // [num_routed]
  const int32_t* token_rows;  // [num_tokens, max_active], in order of ascending
                              // expert, then -1
};
template <typename F>
void ForEachArray(RoutePlan& plan, const F& f) {
  f("expert_offsets", plan.expert_offsets, plan.num_experts + 1);
  f("row_token", plan.row_token, plan.num_routed);
  f("row_gate", plan.row_gate, plan.num_routed);
  f("token_rows", plan.token_rows, plan.num_tokens * plan.max_active);
}

// What the experts have forward and backward.
template <typename Args, typename F>
void ForEachExpertArray(Args& a, const F& f) {
  ForEachArray(a.plan, f);
  f("hidden", a.hidden, a.plan.num_tokens * a.d_model);
  f("gate_up_weight", a.gate_up_weight,
    a.plan.num_experts * a.d_model * 2 * a.d_ffn);
  f("down_weight", a.down_weight, a.plan.num_experts * a.d_ffn * a.d_model);
  f("gate_up", a.gate_up, a.plan.num_routed * 2 * a.d_ffn);
  f("activation", a.activation, a.plan.num_routed * a.d_ffn);
}

template <typename Activation>  // float; on a device also Bf16
struct ExpertForwardArgsOf {
  RoutePlan plan;
  int64_t d_model, d_ffn;
  const Activation* hidden;          // [num_tokens, d_model]
  const Activation* gate_up_weight;  // [num_experts, d_model, 2*d_ffn]
  const Activation* down_weight;     // [num_experts, d_ffn, d_model]
  Activation* gate_up;     // [num_routed, 2*d_ffn]  saved for backward
  Activation* row_output;  // [num_routed, d_model]  scratch
  // [num_tokens, d_model], += (residual stream); null: gate_up only, with the
  // same bits.
  Activation* out;
  // Not used by the CPU:
  Activation* activation = nullptr;       // [num_routed, d_ffn]    scratch
  const int32_t* host_offsets = nullptr;  // expert_offsets on the host
};
using ExpertForwardArgs = ExpertForwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(ExpertForward);
template <typename Activation, typename F>
void ForEachArray(ExpertForwardArgsOf<Activation>& a, const F& f) {
  ForEachExpertArray(a, f);
  f("row_output", a.row_output, a.plan.num_routed * a.d_model);
  f("out", a.out, a.plan.num_tokens * a.d_model);
}

template <typename Activation>
struct ExpertBackwardArgsOf {
  RoutePlan plan;
  int64_t d_model, d_ffn;
  const Activation* hidden;          // [num_tokens, d_model]
  const Activation* gate_up_weight;  // [num_experts, d_model, 2*d_ffn]
  const Activation* down_weight;     // [num_experts, d_ffn, d_model]
  const Activation* gate_up;         // [num_routed, 2*d_ffn]  from forward
  const Activation* d_out;           // [num_tokens, d_model]
  Activation* d_gate_up;             // [num_routed, 2*d_ffn]  scratch
  Activation* d_row_hidden;          // [num_routed, d_model]  scratch
  Activation* activation;            // [num_routed, d_ffn]    scratch
  float* d_row_gate;                 // [num_routed]  = <d_out_t, E_i(x_t)>
  Activation* d_hidden;              // [num_tokens, d_model]  =
  float* d_gate_up_weight;  // [num_experts, d_model, 2*d_ffn]  = (zero for an
                            // expert without rows)
  float* d_down_weight;     // [num_experts, d_ffn, d_model]    =
  const int32_t* host_offsets = nullptr;  // expert_offsets on the host; not
                                          // used by the CPU
};
using ExpertBackwardArgs = ExpertBackwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(ExpertBackward);
template <typename Activation, typename F>
void ForEachArray(ExpertBackwardArgsOf<Activation>& a, const F& f) {
  const int64_t rows = a.plan.num_routed, d = a.d_model, width = a.d_ffn;
  const int64_t tokens = a.plan.num_tokens, experts = a.plan.num_experts;
  ForEachExpertArray(a, f);
  f("d_out", a.d_out, tokens * d);
  f("d_gate_up", a.d_gate_up, rows * 2 * width);
  f("d_row_hidden", a.d_row_hidden, rows * d);
  f("d_row_gate", a.d_row_gate, rows);
  f("d_hidden", a.d_hidden, tokens * d);
  f("d_gate_up_weight", a.d_gate_up_weight, experts * d * 2 * width);
  f("d_down_weight", a.d_down_weight, experts * width * d);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_EXPERT_MLP_H_
