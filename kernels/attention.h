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

struct AttentionForwardArgs {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* qkv;    // [num_sequences*sequence_length, 3*num_heads*head_dim]
  float* out;          // [num_sequences*sequence_length, num_heads*head_dim]
  float* log_sum_exp;  // [num_sequences, num_heads, sequence_length]
};
SOFTMOE_DECLARE_KERNEL(AttentionForward);

struct AttentionBackwardArgs {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* qkv;
  const float* out;
  const float* log_sum_exp;
  const float* d_out;
  float* d_qkv;  // like qkv, =
};
SOFTMOE_DECLARE_KERNEL(AttentionBackward);

// Rotates q and k in place by position (rotate-half, base rope_base); inverse
// rotates back, which is the gradient.
struct RopeArgs {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* cosine;  // [sequence_length, head_dim/2]
  const float* sine;    // [sequence_length, head_dim/2]
  float* qkv;           // [num_sequences*sequence_length, 3*num_heads*head_dim]
  bool inverse = false;
};
SOFTMOE_DECLARE_KERNEL(Rope);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ATTENTION_H_
