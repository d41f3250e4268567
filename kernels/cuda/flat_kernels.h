// SPDX-License-Identifier: Apache-2.0
//
// flat_kernels.h - operations on arrays of any shape on a CUDA device: sum of
// squares, +=, casts.
//
// As in row_kernels.h: device pointers, nothing synchronised, fixed orders of
// summation, no atomics. SumOfSquares adds within its blocks as the CPU does,
// and the blocks in a fixed tree.
#ifndef SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_

#include <cstdint>

#include "kernels/adamw.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/simt/bf16.h"

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_KERNEL(SumOfSquares);
SOFTMOE_DECLARE_CUDA_KERNEL(SumOfBlocks);
SOFTMOE_DECLARE_CUDA_KERNEL(Add);
// Adds the gradient of the router's input to that of the activations.
SOFTMOE_DECLARE_CUDA_FUNCTION(Add, AddArgsOf<float, Bf16>);

// Casts, which only devices have. To bf16: to the nearest, ties to even; NaN
// stays NaN.
struct CastToBf16Args {
  int64_t size;
  const float* from;  // [size]
  Bf16* to;           // [size]
};
template <typename F>
void ForEachArray(CastToBf16Args& a, const F& f) {
  f("from", a.from, a.size);
  f("to", a.to, a.size);
}

struct CastToFloatArgs {
  int64_t size;
  const Bf16* from;  // [size]
  float* to;         // [size]
};
template <typename F>
void ForEachArray(CastToFloatArgs& a, const F& f) {
  f("from", a.from, a.size);
  f("to", a.to, a.size);
}

SOFTMOE_DECLARE_CUDA_KERNEL(CastToBf16);
SOFTMOE_DECLARE_CUDA_KERNEL(CastToFloat);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_FLAT_KERNELS_H_
