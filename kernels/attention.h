// SPDX-License-Identifier: Apache-2.0
//
// attention.h - causal multi-head attention over packed q, k, v (RoPE already
// applied), scale 1/sqrt(head_dim); tiled with a running softmax, so that no
// [sequence_length, sequence_length] matrix exists (SPEC.md 3.2).
#ifndef SOFTMOE_KERNELS_ATTENTION_H_
#define SOFTMOE_KERNELS_ATTENTION_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

// Floats of scratch on a device, forward and backward: the scores of
// query_block queries of every sequence at a time.
inline int64_t AttentionScratch(int64_t num_sequences, int64_t sequence_length,
                                int64_t query_block) {
  return 2 * num_sequences * query_block * sequence_length;
}
// The same with activations of bf16: scores as above, the weights beside them,
// and the sums of one head's d_k and d_v.
inline int64_t AttentionScratchForBf16(int64_t num_sequences,
                                       int64_t sequence_length,
                                       int64_t head_dim, int64_t query_block) {
  const int64_t whole_rows = (sequence_length + 7) / 8 * 8;
  return AttentionScratch(num_sequences, sequence_length, query_block) +
         num_sequences * query_block * whole_rows +
         2 * num_sequences * sequence_length * head_dim;
}

template <typename Activation>  // float; on a device also Bf16
struct AttentionForwardArgsOf {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const Activation* qkv;  // [num_sequences*sequence_length,
                          //  3*num_heads*head_dim]
  Activation* out;        // [num_sequences*sequence_length, num_heads*head_dim]
  float* log_sum_exp;     // [num_sequences, num_heads, sequence_length]
  // GPU only:
  int64_t query_block = 0;
  float* scratch = nullptr;  // [AttentionScratch or AttentionScratchForBf16]
};
using AttentionForwardArgs = AttentionForwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(AttentionForward);

template <typename Activation>
struct AttentionBackwardArgsOf {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const Activation* qkv;
  const Activation* out;
  const float* log_sum_exp;
  const Activation* d_out;
  Activation* d_qkv;  // like qkv, =
  // GPU only:
  int64_t query_block = 0;
  float* scratch = nullptr;  // as forward
};
using AttentionBackwardArgs = AttentionBackwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(AttentionBackward);

// Rotates q and k in place by position (rotate-half, base rope_base); inverse
// rotates back, which is the gradient.
template <typename Activation>
struct RopeArgsOf {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* cosine;  // [sequence_length, head_dim/2]
  const float* sine;    // [sequence_length, head_dim/2]
  Activation* qkv;      // [num_sequences*sequence_length, 3*num_heads*head_dim]
  bool inverse = false;
};
using RopeArgs = RopeArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(Rope);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ATTENTION_H_
