// SPDX-License-Identifier: Apache-2.0
//
// casts.h - arguments of the casts between float and bf16, which only devices
// have: cuda/flat_kernels.h.
#ifndef SOFTMOE_KERNELS_CASTS_H_
#define SOFTMOE_KERNELS_CASTS_H_

#include <cstdint>

#include "kernels/simt/bf16.h"

namespace softmoe::kernels {

// Rounds to the nearest, ties to even; NaN stays NaN.
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

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CASTS_H_
