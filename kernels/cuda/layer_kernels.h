// SPDX-License-Identifier: Apache-2.0
//
// layer_kernels.h - what a layer computes between its matrix products, on a
// CUDA device: embedding, RoPE, permute, SwiGLU, unpermute, cross-entropy.
//
// As in row_kernels.h: device pointers, the bodies of the CPU, nothing
// synchronised, fixed orders of summation, no atomics. Compiled for sm_80,
// sm_90a and sm_100; not yet run on a device.
#ifndef SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_

#include "kernels/attention.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/embedding.h"
#include "kernels/expert_mlp.h"

namespace softmoe::kernels {

// rows[r] = hidden[row_token[r]]: the input of the experts' products, and with
// d_out for hidden their gradient (the gate multiplies the activation).
struct PermuteArgs {
  RoutePlan plan;
  int64_t d_model;
  const float* hidden;  // [num_tokens, d_model]
  float* rows;          // [num_routed, d_model]
};
SOFTMOE_DECLARE_CUDA_KERNEL(Permute);

// out[t] (+)= the rows of token t, in order of ascending expert.
struct UnpermuteArgs {
  RoutePlan plan;
  int64_t d_model;
  const float* rows;  // [num_routed, d_model]
  bool accumulate;    // out +=: the residual stream
  float* out;         // [num_tokens, d_model]
};
SOFTMOE_DECLARE_CUDA_KERNEL(Unpermute);

// activation = row_gate * SiLU(gate) * up.
struct SwigluForwardArgs {
  RoutePlan plan;
  int64_t d_ffn;
  const float* gate_up;  // [num_routed, 2*d_ffn]
  float* activation;     // [num_routed, d_ffn]
};
SOFTMOE_DECLARE_CUDA_KERNEL(SwigluForward);

struct SwigluBackwardArgs {
  RoutePlan plan;
  int64_t d_ffn;
  const float* gate_up;         // [num_routed, 2*d_ffn]  from forward
  const float* d_activation;    // [num_routed, d_ffn]; may be d_gate_up
  int64_t d_activation_stride;  // from row to row
  float* d_gate_up;             // [num_routed, 2*d_ffn]
  float* activation;            // [num_routed, d_ffn]  as forward had it
  float* d_row_gate;            // [num_routed]
};
SOFTMOE_DECLARE_CUDA_KERNEL(SwigluBackward);

// token_loss = logsumexp(logits) - logits[target], in nats; and in place of the
// logits, if wanted, grad_scale * (softmax(logits) - one_hot(target)).
struct TokenCrossEntropyArgs {
  int64_t num_tokens, vocab_size;
  const int32_t* targets;  // [num_tokens], in [0, vocab_size)
  float grad_scale;
  bool want_gradient;
  float* logits;      // [num_tokens, vocab_size]; on return d_logits, or
                      // unspecified if no gradient is wanted
  float* token_loss;  // [num_tokens]; NaN where a logit is not finite
};
SOFTMOE_DECLARE_CUDA_KERNEL(TokenCrossEntropy);

SOFTMOE_DECLARE_CUDA_KERNEL(EmbeddingForward);
SOFTMOE_DECLARE_CUDA_KERNEL(EmbeddingBackward);
SOFTMOE_DECLARE_CUDA_KERNEL(Rope);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_LAYER_KERNELS_H_
