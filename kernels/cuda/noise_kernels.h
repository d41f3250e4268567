// SPDX-License-Identifier: Apache-2.0
//
// noise_kernels.h - the router's noise (noise.h) on a CUDA device.
//
// As in row_kernels.h: device pointers, nothing synchronised. The jitter has
// the CPU's bits; so has the logits' noise, except for the last bit where the
// device's logarithm, sine and cosine, in double, round to another float.
#ifndef SOFTMOE_KERNELS_CUDA_NOISE_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_NOISE_KERNELS_H_

#include "kernels/cuda/row_kernels.h"
#include "kernels/noise.h"

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_KERNEL(InputJitter);
// From activations to the router's input, and from its gradient to theirs.
SOFTMOE_DECLARE_CUDA_FUNCTION(InputJitter, InputJitterArgsOf<Bf16, float>);
SOFTMOE_DECLARE_CUDA_FUNCTION(InputJitter, InputJitterArgsOf<float, Bf16>);
SOFTMOE_DECLARE_CUDA_KERNEL(LogitNoise);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_NOISE_KERNELS_H_
