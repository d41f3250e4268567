// SPDX-License-Identifier: Apache-2.0
//
// attention_block.h - h += Attention(RMSNorm(h)) W_o (SPEC.md 3.2).
#ifndef SOFTMOE_OPTIMIZED_ATTENTION_BLOCK_H_
#define SOFTMOE_OPTIMIZED_ATTENTION_BLOCK_H_

#include <cstdint>

#include "optimized/pass.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// Computes layers[layer].moe_residual from layers[layer].residual.
void AttentionBlockForward(const Pass& pass, int64_t layer);

// Turns work.d_residual from the gradient with respect to moe_residual into
// that with respect to residual, and overwrites the block's tensors in
// `gradients` [layout.total].
void AttentionBlockBackward(const Pass& pass, int64_t layer, float* gradients);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_ATTENTION_BLOCK_H_
