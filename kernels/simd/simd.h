// SPDX-License-Identifier: Apache-2.0
//
// simd.h - one vector of floats, as wide as the ISA level it is compiled for:
// 8 at v3 (AVX2), 16 at v4 (AVX-512). Only per-ISA sources include it (see
// isa.h): everything lives in namespace SOFTMOE_ISA, so that no inline function
// compiled for AVX-512 is ever linked into a program path for AVX2.
//
// Every operation is IEEE and lane by lane, so a computation written with it
// gives the same bits at both widths unless it reduces over lanes; ReduceSum
// says in which order it adds. Min and Max are `a < b ? a : b` and
// `a > b ? a : b`: where an operand is NaN, or both are zeros, b is returned.
#ifndef SOFTMOE_KERNELS_SIMD_SIMD_H_
#define SOFTMOE_KERNELS_SIMD_SIMD_H_

// g++ 12 takes the deliberately undefined vectors of its own intrinsics for a
// mistake (GCC bug 105593); the pragma covers that header and no other code.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

#include "kernels/simd/inline.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "kernels/simd/simd_v4.h"
#else
#include "kernels/simd/simd_v3.h"
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

SOFTMOE_INLINE Floats operator-(Floats a) { return Floats(0.0f) - a; }
SOFTMOE_INLINE Floats& operator+=(Floats& a, Floats b) { return a = a + b; }
SOFTMOE_INLINE Floats& operator-=(Floats& a, Floats b) { return a = a - b; }
SOFTMOE_INLINE Floats& operator*=(Floats& a, Floats b) { return a = a * b; }

// a*b - c and c - a*b, each rounded once.
SOFTMOE_INLINE Floats Fms(Floats a, Floats b, Floats c) {
  return Fma(a, b, -c);
}

// Sum of 16 lanes, 16 -> 8 -> 4 -> 2 -> 1 by halves: the same bits at v3, where
// the 16 lanes are two vectors, and at v4.
SOFTMOE_INLINE float ReduceSum16(const Floats (&x)[16 / Floats::kWidth]) {
  if constexpr (Floats::kWidth == 8) {
    return ReduceSum(x[0] + x[16 / Floats::kWidth - 1]);
  } else {
    return ReduceSum(x[0]);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMD_SIMD_H_
