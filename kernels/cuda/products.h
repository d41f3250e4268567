// SPDX-License-Identifier: Apache-2.0
//
// products.h - the operations that are mostly matrix products, on a CUDA
// device: cuBLASLt's products, and row kernels between them; attention in bf16
// has kernels of its own where it can (flash_attention.h).
//
// The argument structs of the CPU headers, with device pointers; enqueued on
// queue.h, nothing synchronised, no atomics: the same bits each time. Where the
// CPU fuses products with what is between them, whole matrices are written
// here: the scratch of the argument structs that only a device needs.
#ifndef SOFTMOE_KERNELS_CUDA_PRODUCTS_H_
#define SOFTMOE_KERNELS_CUDA_PRODUCTS_H_

#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/cuda/queue.h"
#include "kernels/expert_mlp.h"
#include "kernels/gemm.h"

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_OPERATION(Gemm, GemmArgs);
SOFTMOE_DECLARE_CUDA_OPERATION(Gemm, GemmArgsOf<Bf16, Bf16>);
SOFTMOE_DECLARE_CUDA_OPERATION(Gemm, GemmArgsOf<Bf16, float>);
SOFTMOE_DECLARE_CUDA_OPERATION_OF(ExpertForward);
SOFTMOE_DECLARE_CUDA_OPERATION_OF(ExpertBackward);
SOFTMOE_DECLARE_CUDA_OPERATION_OF(AttentionForward);
SOFTMOE_DECLARE_CUDA_OPERATION_OF(AttentionBackward);
SOFTMOE_DECLARE_CUDA_OPERATION_OF(HeadCrossEntropy);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_PRODUCTS_H_
