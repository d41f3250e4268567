// SPDX-License-Identifier: Apache-2.0
//
// layer_kernels.h - what a layer computes between its matrix products, on a
// CUDA device: embedding, RoPE, permute, SwiGLU, unpermute, cross-entropy.
//
// As fast as memory are rows of a multiple of eight columns (row_width.h); with
// another d_model, d_ffn or vocab_size, which only fp32 may have, or another
// half of a head's width, one element is accessed at a time.
//
// As in row_kernels.h: device pointers, the bodies of the CPU, nothing
// synchronised, fixed orders of summation, no atomics.
#ifndef SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_

#include "kernels/attention.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/embedding.h"
#include "kernels/expert_mlp.h"

namespace softmoe::kernels {

// rows[r] = hidden[row_token[r]]: the input of the experts' products, and with
// d_out for hidden their gradient (the gate multiplies the activation).
template <typename Activation>
struct PermuteArgsOf {
  RoutePlan plan;
  int64_t d_model;
  const Activation* hidden;  // [num_tokens, d_model]
  Activation* rows;          // [num_routed, d_model]
};
SOFTMOE_DECLARE_CUDA_KERNEL_OF(Permute);

// out[t] (+)= the rows of token t, in order of ascending expert.
template <typename Activation>
struct UnpermuteArgsOf {
  RoutePlan plan;
  int64_t d_model;
  const Activation* rows;  // [num_routed, d_model]
  bool accumulate;         // out +=: the residual stream
  Activation* out;         // [num_tokens, d_model]
};
SOFTMOE_DECLARE_CUDA_KERNEL_OF(Unpermute);

// activation = row_gate * SiLU(gate) * up.
template <typename Activation>
struct SwigluForwardArgsOf {
  RoutePlan plan;
  int64_t d_ffn;
  const Activation* gate_up;  // [num_routed, 2*d_ffn]
  Activation* activation;     // [num_routed, d_ffn]
};
SOFTMOE_DECLARE_CUDA_KERNEL_OF(SwigluForward);

template <typename Activation>
struct SwigluBackwardArgsOf {
  RoutePlan plan;
  int64_t d_ffn;
  const Activation* gate_up;       // [num_routed, 2*d_ffn]  from forward
  const Activation* d_activation;  // [num_routed, d_ffn]; may be d_gate_up
  int64_t d_activation_stride;     // from row to row
  Activation* d_gate_up;           // [num_routed, 2*d_ffn]
  Activation* activation;          // [num_routed, d_ffn]  as forward had it
  float* d_row_gate;               // [num_routed]
};
SOFTMOE_DECLARE_CUDA_KERNEL_OF(SwigluBackward);

// token_loss = logsumexp(logits) - logits[target], in nats;
// d_logits = grad_scale * (softmax(logits) - one_hot(target)).
// is_greedy = target is the first of the largest logits.
template <typename Activation>
struct TokenCrossEntropyArgsOf {
  int64_t num_tokens, vocab_size;
  const int32_t* targets;  // [num_tokens], in [0, vocab_size)
  float grad_scale;
  float* logits;  // [num_tokens, vocab_size]; overwritten if d_logits is logits
  Activation* d_logits;  // [num_tokens, vocab_size]; may be logits; null: not
                         // wanted
  // [num_tokens]; NaN where a logit is NaN or +infinity, or all are -infinity;
  // else +infinity where the target's is -infinity.
  float* token_loss;
  int32_t* is_greedy = nullptr;  // [num_tokens]; null: not wanted
};
SOFTMOE_DECLARE_CUDA_KERNEL_OF(TokenCrossEntropy);

SOFTMOE_DECLARE_CUDA_KERNEL_OF(EmbeddingForward);
SOFTMOE_DECLARE_CUDA_KERNEL_OF(EmbeddingBackward);
SOFTMOE_DECLARE_CUDA_KERNEL_OF(Rope);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_
