// SPDX-License-Identifier: Apache-2.0
//
// scalar.h - the operations of simd.h for one float, on the CPU and on the
// device, and for one double: what lets a body be written once and run on a
// vector of rows, on one CUDA thread, or at double precision.
//
// The float versions give the bits of a lane of simd.h. And floats to and from
// their upper halves, in which memory keeps them (bf16.h).
#ifndef SOFTMOE_KERNELS_SIMT_SCALAR_H_
#define SOFTMOE_KERNELS_SIMT_SCALAR_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"
#include "kernels/simt/bf16.h"

namespace softmoe::kernels::SOFTMOE_ISA {

SOFTMOE_INLINE float Fma(float a, float b, float c) { return fmaf(a, b, c); }
SOFTMOE_INLINE double Fma(double a, double b, double c) { return fma(a, b, c); }
// a*b - c, rounded once. (0 - c: the zeros of simd.h.)
SOFTMOE_INLINE float Fms(float a, float b, float c) {
  return Fma(a, b, 0.0f - c);
}
SOFTMOE_INLINE double Fms(double a, double b, double c) {
  return Fma(a, b, 0.0 - c);
}
SOFTMOE_INLINE float Sqrt(float a) { return sqrtf(a); }
SOFTMOE_INLINE double Sqrt(double a) { return sqrt(a); }
SOFTMOE_INLINE float Abs(float a) { return fabsf(a); }
SOFTMOE_INLINE double Abs(double a) { return fabs(a); }

// a < b ? a : b, and a > b ? a : b.
SOFTMOE_INLINE float Min(float a, float b) { return a < b ? a : b; }
SOFTMOE_INLINE double Min(double a, double b) { return a < b ? a : b; }
SOFTMOE_INLINE float Max(float a, float b) { return a > b ? a : b; }
SOFTMOE_INLINE double Max(double a, double b) { return a > b ? a : b; }

SOFTMOE_INLINE float Select(bool m, float if_true, float if_false) {
  return m ? if_true : if_false;
}
SOFTMOE_INLINE double Select(bool m, double if_true, double if_false) {
  return m ? if_true : if_false;
}
SOFTMOE_INLINE int32_t Select(bool m, int32_t if_true, int32_t if_false) {
  return m ? if_true : if_false;
}
SOFTMOE_INLINE bool Any(bool m) { return m; }

template <int kBits>
SOFTMOE_INLINE int32_t ShiftLeft(int32_t a) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << kBits);
}
template <int kBits>
SOFTMOE_INLINE int32_t ShiftRightSigned(int32_t a) {
  return a >> kBits;
}
SOFTMOE_INLINE int32_t BitsOf(float a) {
  int32_t bits;
  memcpy(&bits, &a, sizeof(bits));
  return bits;
}
SOFTMOE_INLINE float FloatsOf(int32_t bits) {
  float a;
  memcpy(&a, &bits, sizeof(a));
  return a;
}
SOFTMOE_INLINE float Convert(int32_t a) { return static_cast<float>(a); }

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

#endif  // SOFTMOE_KERNELS_SIMT_SCALAR_H_
