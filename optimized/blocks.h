// SPDX-License-Identifier: Apache-2.0
//
// blocks.h - the two parts of a layer: h += Attention(RMSNorm(h)) W_o, and
// h += sum_i gate_i E_i(x), x = RMSNorm(h) (SPEC.md 2, 3.2).
#ifndef SOFTMOE_OPTIMIZED_BLOCKS_H_
#define SOFTMOE_OPTIMIZED_BLOCKS_H_

#include <cstdint>

#include "optimized/allocation.h"
#include "optimized/pass.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// ---- Attention (attention_block.cc).

// Computes layers[layer].moe_residual from layers[layer].residual.
void AttentionBlockForward(const Pass& pass, int64_t layer);

// Turns work.d_residual from the gradient with respect to moe_residual into
// that with respect to residual, and overwrites the block's tensors in
// `gradients` [layout.total].
void AttentionBlockBackward(const Pass& pass, int64_t layer, float* gradients);

// ---- The mixture of experts (moe_block.cc).

// Computes `out` [num_tokens, d_model] from layers[layer].moe_residual, and
// writes what the router did into the layer's report.
void MoeBlockForward(const Pass& pass, int64_t layer,
                     const LayerAllocation& allocation, Activation* out);

// Repeat parts of the forward pass, to the same bits: moe_normed and the
// router's input, from moe_residual; and the experts' gate_up, from moe_normed.
void RecomputeRouterInput(const Pass& pass, int64_t layer);
void RecomputeExperts(const Pass& pass, int64_t layer);

// Turns work.d_residual from the gradient with respect to the block's output
// into that with respect to moe_residual, and overwrites the block's tensors in
// `gradients`; d_mean_active goes into the layer's report.
void MoeBlockBackward(const Pass& pass, int64_t layer,
                      const LayerAllocation& allocation, float* gradients);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BLOCKS_H_
