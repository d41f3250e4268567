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
  // GPU only:
  Activation* activation = nullptr;       // [num_routed, d_ffn]    scratch
  const int32_t* host_offsets = nullptr;  // expert_offsets on the host
};
using ExpertForwardArgs = ExpertForwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(ExpertForward);

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

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_EXPERT_MLP_H_
