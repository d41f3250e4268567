// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy.h - LM head and token cross-entropy, fused over blocks of
// tokens so that [num_tokens, vocab_size] logits never exist.
#ifndef SOFTMOE_KERNELS_CROSS_ENTROPY_H_
#define SOFTMOE_KERNELS_CROSS_ENTROPY_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

template <typename Activation>  // float; on a device also Bf16
struct HeadCrossEntropyArgsOf {
  int64_t num_tokens, d_model, vocab_size;
  const Activation* hidden;       // [num_tokens, d_model], after the final norm
  const Activation* head_weight;  // [vocab_size, d_model]
  const int32_t* targets;         // [num_tokens], in [0, vocab_size)
  float* token_loss;              // [num_tokens], nats
  // Gradients of grad_scale * sum of token losses; null: loss only.
  float grad_scale = 0;
  Activation* d_hidden = nullptr;  // [num_tokens, d_model], =
  float* d_head_weight = nullptr;  // [vocab_size, d_model], =
  // [1], nats: the token losses added in double, in order; null: not wanted.
  double* loss_sum = nullptr;
  // [num_tokens]: 1 where the target is the most likely token, of equals the
  // first; else 0. Null: not wanted.
  int32_t* is_greedy = nullptr;
  // GPU only: scratch for the logits of chunk_tokens tokens at a time.
  int64_t chunk_tokens = 0;
  float* logits = nullptr;  // [chunk_tokens, vocab_size]
  // Like logits; null: in their place, if they are Activations.
  Activation* d_logits = nullptr;
};
using HeadCrossEntropyArgs = HeadCrossEntropyArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(HeadCrossEntropy);
template <typename Activation, typename F>
void ForEachArray(HeadCrossEntropyArgsOf<Activation>& a, const F& f) {
  f("hidden", a.hidden, a.num_tokens * a.d_model);
  f("head_weight", a.head_weight, a.vocab_size * a.d_model);
  f("targets", a.targets, a.num_tokens);
  f("token_loss", a.token_loss, a.num_tokens);
  f("d_hidden", a.d_hidden, a.num_tokens * a.d_model);
  f("d_head_weight", a.d_head_weight, a.vocab_size * a.d_model);
  f("loss_sum", a.loss_sum, 1);
  f("is_greedy", a.is_greedy, a.num_tokens);
  f("logits", a.logits, a.chunk_tokens * a.vocab_size);
  f("d_logits", a.d_logits, a.chunk_tokens * a.vocab_size);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CROSS_ENTROPY_H_
