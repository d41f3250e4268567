// SPDX-License-Identifier: Apache-2.0
//
// bf16_convert.h - floats to and from their upper halves.
#ifndef SOFTMOE_KERNELS_SIMT_BF16_CONVERT_H_
#define SOFTMOE_KERNELS_SIMT_BF16_CONVERT_H_

#include "kernels/simt/bf16.h"
#include "kernels/simt/scalar.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Rounds to the nearest, ties to even, beyond the largest to infinity;
// subnormal numbers too. NaN stays NaN, with its sign.
SOFTMOE_INLINE Bf16 RoundToBf16(float x) {
  const uint32_t bits = static_cast<uint32_t>(BitsOf(x));
  const uint32_t odd = bits >> 16 & 1;
  const uint32_t rounded = bits + 0x7fff + odd;
  const uint32_t quiet =
      bits | 0x400000;  // its payload may be in the lower half
  return {static_cast<uint16_t>((x != x ? quiet : rounded) >> 16)};
}

SOFTMOE_INLINE float FloatOf(Bf16 x) {
  return FloatsOf(static_cast<int32_t>(uint32_t{x.bits} << 16));
}

// For kernels that are written once for arrays of floats and of bf16.
SOFTMOE_INLINE float FloatOf(float x) { return x; }
SOFTMOE_INLINE void StoreFloat(float x, float* to) { *to = x; }
SOFTMOE_INLINE void StoreFloat(float x, Bf16* to) { *to = RoundToBf16(x); }

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_BF16_CONVERT_H_
