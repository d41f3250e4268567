// SPDX-License-Identifier: Apache-2.0
//
// flat_kernels.h - operations on arrays of any shape on a CUDA device: sum of
// squares, +=, casts.
//
// As in row_kernels.h: device pointers, nothing synchronised, fixed orders of
// summation, no atomics. SumOfSquares adds within its blocks as the CPU does,
// and the blocks in a fixed tree. Compiled for sm_80, sm_90a and sm_100; not
// yet run on a device.
#ifndef SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_

#include "kernels/adamw.h"
#include "kernels/casts.h"
#include "kernels/cuda/row_kernels.h"

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_KERNEL(SumOfSquares);
SOFTMOE_DECLARE_CUDA_KERNEL(SumOfBlocks);
SOFTMOE_DECLARE_CUDA_KERNEL(Add);
// Adds the gradient of the router's input to that of the activations.
SOFTMOE_DECLARE_CUDA_FUNCTION(Add, AddArgsOf<float, Bf16>);

SOFTMOE_DECLARE_CUDA_KERNEL(CastToBf16);
SOFTMOE_DECLARE_CUDA_KERNEL(CastToFloat);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_
