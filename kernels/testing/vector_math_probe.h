// SPDX-License-Identifier: Apache-2.0
//
// vector_math_probe.h - lets a test reach simd.h, vector_math.h and the scalar
// functions of swiglu.h and lapsum_body.h, which only per-ISA sources may
// include.
#ifndef SOFTMOE_KERNELS_TESTING_VECTOR_MATH_PROBE_H_
#define SOFTMOE_KERNELS_TESTING_VECTOR_MATH_PROBE_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

enum class ProbeFunction {
  kExp,
  kLog,
  kExpScalar,  // the scalar instantiation of the same template
  kLogScalar,
  kSigmoid,      // swiglu.h
  kSilu,         // SwigluForward(x, 1, 1)
  kSiluSlope,    // SwigluBackward(x, 1, 1, 1).d_gate
  kLaplaceCdf,   // lapsum_body.h
  kTranspose,    // x and y [W, W], W = width; size is ignored
  kReduceSum16,  // y[i/16] = sum of 16 lanes
  kReduceMax,    // y[i/W] = largest of W lanes
  kCopy,         // Load/Store with partial tails
  kMin,          // Min(x, 0) and so on, to see NaN and zeros
  kMax,
  kBitsOfLess,     // y[i/W] = Bits(x < 0) as a number
  kSelectNotLess,  // !(x < 0) ? x : -x
};

// y[i] = function(x[i]), whole vectors and a partial tail.
struct ProbeArgs {
  ProbeFunction function;
  int64_t size;
  const float* x;
  float* y;
};
SOFTMOE_DECLARE_KERNEL(Probe);

// Lanes of a vector at each level.
constexpr int ProbeWidth(Isa isa) { return isa == Isa::kV4 ? 16 : 8; }

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_VECTOR_MATH_PROBE_H_
