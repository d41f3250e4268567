// SPDX-License-Identifier: Apache-2.0
//
// rope_body.h - RoPE's rotation, for any Real: a float, a vector.
#ifndef SOFTMOE_KERNELS_ROPE_BODY_H_
#define SOFTMOE_KERNELS_ROPE_BODY_H_

#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// (x, y) -> (x cosine - y sine, y cosine + x sine).
template <typename Real>
SOFTMOE_INLINE void RotatePair(Real cosine, Real sine, Real& x, Real& y) {
  const Real a = x, b = y;
  x = Fms(a, cosine, b * sine);
  y = Fma(b, cosine, a * sine);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROPE_BODY_H_
