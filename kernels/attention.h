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
// Whether a device computes attention of bf16 with its tensor cores at once,
// without scores in memory (cuda/flash_attention.h).
inline bool HasFlashAttention(int64_t head_dim) {
  return head_dim == 64 || head_dim == 128;
}
// Its rows of scratch are those of whole blocks of queries.
inline int64_t FlashAttentionRows(int64_t sequence_length) {
  return (sequence_length + 127) / 128 * 128;
}
// The same with activations of bf16: two numbers for each row; or, without
// flash attention, scores as above, the weights beside them, and
// the sums of one head's d_k and d_v.
inline int64_t AttentionScratchForBf16(int64_t num_sequences,
                                       int64_t sequence_length,
                                       int64_t num_heads, int64_t head_dim,
                                       int64_t query_block) {
  if (HasFlashAttention(head_dim)) {
    return 2 * num_sequences * num_heads * FlashAttentionRows(sequence_length);
  }
  const int64_t whole_rows = (sequence_length + 7) / 8 * 8;
  return AttentionScratch(num_sequences, sequence_length, query_block) +
         num_sequences * query_block * whole_rows +
         2 * num_sequences * sequence_length * head_dim;
}

// What forward and backward have in common.
template <typename Args, typename F>
void ForEachAttentionArray(Args& a, const F& f) {
  const int64_t tokens = a.num_sequences * a.sequence_length;
  const int64_t width = a.num_heads * a.head_dim;
  f("qkv", a.qkv, tokens * 3 * width);
  f("out", a.out, tokens * width);
  f("log_sum_exp", a.log_sum_exp, tokens * a.num_heads);
  f("scratch", a.scratch,
    sizeof(*a.out) == sizeof(float)
        ? AttentionScratch(a.num_sequences, a.sequence_length, a.query_block)
        : AttentionScratchForBf16(a.num_sequences, a.sequence_length,
                                  a.num_heads, a.head_dim, a.query_block));
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
template <typename Activation, typename F>
void ForEachArray(AttentionForwardArgsOf<Activation>& a, const F& f) {
  ForEachAttentionArray(a, f);
}

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
template <typename Activation, typename F>
void ForEachArray(AttentionBackwardArgsOf<Activation>& a, const F& f) {
  ForEachAttentionArray(a, f);
  const int64_t tokens = a.num_sequences * a.sequence_length;
  f("d_out", a.d_out, tokens * a.num_heads * a.head_dim);
  f("d_qkv", a.d_qkv, tokens * 3 * a.num_heads * a.head_dim);
}

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
template <typename Activation, typename F>
void ForEachArray(RopeArgsOf<Activation>& a, const F& f) {
  f("cosine", a.cosine, a.sequence_length * (a.head_dim / 2));
  f("sine", a.sine, a.sequence_length * (a.head_dim / 2));
  f("qkv", a.qkv,
    a.num_sequences * a.sequence_length * 3 * a.num_heads * a.head_dim);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ATTENTION_H_
