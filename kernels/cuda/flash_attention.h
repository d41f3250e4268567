// SPDX-License-Identifier: Apache-2.0
//
// flash_attention.h - attention of bf16 with the device's tensor cores, in
// kernels of our own: scores stay in registers, and no memory is quadratic.
// products.h has the operations, which choose it by HasFlashAttention.
#ifndef SOFTMOE_KERNELS_CUDA_FLASH_ATTENTION_H_
#define SOFTMOE_KERNELS_CUDA_FLASH_ATTENTION_H_

#include "kernels/attention.h"
#include "kernels/cuda/queue.h"

namespace softmoe::kernels {

// Errors   InternalError if there is none for this head_dim.
SOFTMOE_DECLARE_CUDA_OPERATION(FlashAttentionForward,
                               AttentionForwardArgsOf<Bf16>);
SOFTMOE_DECLARE_CUDA_OPERATION(FlashAttentionBackward,
                               AttentionBackwardArgsOf<Bf16>);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_FLASH_ATTENTION_H_
