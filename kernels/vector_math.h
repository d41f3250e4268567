// SPDX-License-Identifier: Apache-2.0
//
// vector_math.h - this project's exp and log: branch-free, the same bits for a
// lane of Floats at every ISA level, for a scalar float, and on the device.
//
// Only fused multiply-adds, products and integer shifts, in a fixed order; no
// libm, whose results differ between machines. Coefficients: minimax (Remez)
// for the relative error of the function, rounded to float.
#ifndef SOFTMOE_KERNELS_VECTOR_MATH_H_
#define SOFTMOE_KERNELS_VECTOR_MATH_H_

#include "kernels/simt/scalar.h"
#ifdef SOFTMOE_CUDA
#include "kernels/simt/float_pack.h"
#else
#include "kernels/simd/simd.h"
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

// e^x.
//
// Max error    1 ulp for x in [-86.98, 88.72]
// Special      0 below -86.99 (smaller results, normal ones below 1.7e-38
//              included, are flushed) and at -inf; +inf above 88.73 and at
//              +inf; exactly 1 at 0; NaN for NaN
template <typename V>
SOFTMOE_INLINE V Exp(V x) {
  // In this argument order Min and Max let a NaN through.
  x = Max(V(-87.3f), Min(V(89.0f), x));
  // 2^23 + 2^22 rounds to an integer; 126 more makes its low bits the exponent
  // field of 2^(n-1).
  const V shift(12582912.0f + 126.0f);
  const V shifted = Fma(x, V(1.44269504f), shift);
  const V n = shifted - shift;
  V r = Fma(n, V(-0.693359375f), x);  // ln 2 in two parts, the first exact
  r = Fma(n, V(2.12194440e-4f), r);
  // 2 e^r = 2 + 2r + r^2 P(r), |r| <= ln(2)/2; doubled, so that the scale
  // 2^(n-1) is a normal number up to n = 128.
  V p(0.0027629099786281586f);
  p = Fma(p, r, V(0.01673749089241028f));
  p = Fma(p, r, V(0.08333677798509598f));
  p = Fma(p, r, V(0.3333304226398468f));
  p = Fma(p, r, V(0.9999998807907104f));
  p = Fma(p, r, V(2.0f));
  p = Fma(p, r, V(2.0f));
  return p * FloatsOf(ShiftLeft<23>(BitsOf(shifted)));
}

// Natural logarithm.
//
// Max error    1 ulp for x > 0, subnormal numbers included
// Special      -inf at 0 and -0; +inf at +inf; NaN below 0 and for NaN;
//              exactly 0 at 1
template <typename V>
SOFTMOE_INLINE V Log(V x) {
  const auto subnormal = x < V(0x1p-126f);
  const V scaled = Select(subnormal, x * V(0x1p23f), x);
  // scaled = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).
  const auto offset = BitsOf(scaled) - BitsOf(V(0.70710678f));
  const auto exponent = ShiftRightSigned<23>(offset);
  const V f = FloatsOf(BitsOf(scaled) - ShiftLeft<23>(exponent)) - V(1.0f);
  const V e = Convert(exponent) - Select(subnormal, V(23.0f), V(0.0f));
  // log(1+f) = f - f^2/2 + f^3 P(f)
  V p(-0.07634443044662476f);
  p = Fma(p, f, V(0.12765450775623322f));
  p = Fma(p, f, V(-0.13161993026733398f));
  p = Fma(p, f, V(0.14201363921165466f));
  p = Fma(p, f, V(-0.1662314534187317f));
  p = Fma(p, f, V(0.20001235604286194f));
  p = Fma(p, f, V(-0.2500082552433014f));
  p = Fma(p, f, V(0.3333333134651184f));
  const V f2 = f * f;
  V y = Fma(e, V(-2.12194440e-4f), f * f2 * p);
  y = Fma(V(-0.5f), f2, y);
  V result = Fma(e, V(0.693359375f), f + y);
  const V infinity(__builtin_inff());
  result = Select(x == infinity, infinity, result);
  result = Select(x == V(0.0f), -infinity, result);
  return Select(x >= V(0.0f), result, V(__builtin_nanf("")));
}

#ifdef SOFTMOE_CUDA
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> Exp(const FloatPack<kSize>& x) {
  return PackOf<kSize>([&](int i) { return Exp(x[i]); });
}
#endif

SOFTMOE_INLINE double Exp(double x) { return exp(x); }
SOFTMOE_INLINE double Log(double x) { return log(x); }

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_VECTOR_MATH_H_
