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

// Elements of the scratch of a device, which holds the weights of query_block
// queries of every sequence at a time; forward and backward.
inline int64_t AttentionScratch(int64_t num_sequences, int64_t sequence_length,
                                int64_t query_block) {
  return 2 * num_sequences * query_block * sequence_length;
}

struct AttentionForwardArgs {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* qkv;    // [num_sequences*sequence_length, 3*num_heads*head_dim]
  float* out;          // [num_sequences*sequence_length, num_heads*head_dim]
  float* log_sum_exp;  // [num_sequences, num_heads, sequence_length]
  // Not used by the CPU:
  int64_t query_block = 0;
  float* scratch = nullptr;  // [AttentionScratch]
};
SOFTMOE_DECLARE_KERNEL(AttentionForward);

struct AttentionBackwardArgs {
  int64_t num_sequences, sequence_length, num_heads, head_dim;
  const float* qkv;
  const float* out;
  const float* log_sum_exp;
  const float* d_out;
  float* d_qkv;  // like qkv, =
  // Not used by the CPU:
  int64_t query_block = 0;
  float* scratch = nullptr;  // [AttentionScratch]
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
