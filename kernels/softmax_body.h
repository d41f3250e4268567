// SPDX-License-Identifier: Apache-2.0
//
// softmax_body.h - sums over the experts of one row, softmax and logsumexp,
// written once for every group across rows (simt/group.h).
#ifndef SOFTMOE_KERNELS_SOFTMAX_BODY_H_
#define SOFTMOE_KERNELS_SOFTMAX_BODY_H_

#include "kernels/simt/group.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Sum over the experts of body(e), in four chains: shorter waits and smaller
// rounding errors than one.
template <typename Real, typename Body>
SOFTMOE_INLINE Real SumOverExperts(int num_experts, const Body& body) {
  Real a(0), b(0), c(0), d(0);
  int e = 0;
  for (; e + 4 <= num_experts; e += 4) {
    a = a + body(e);
    b = b + body(e + 1);
    c = c + body(e + 2);
    d = d + body(e + 3);
  }
  if (e < num_experts) a = a + body(e);
  if (e + 1 < num_experts) b = b + body(e + 1);
  if (e + 2 < num_experts) c = c + body(e + 2);
  return (a + b) + (c + d);
}

// softmax(scores) into `softmax`; returns logsumexp(scores). largest = s_1.
template <typename Real>
SOFTMOE_INLINE Real Softmax(const Real* scores, int num_experts, Real largest,
                            Real* softmax) {
  const Real sum = SumOverExperts<Real>(num_experts, [&](int e) {
    return softmax[e] = Exp(scores[e] - largest);
  });
  const Real inverse = Real(1) / sum;
  for (int e = 0; e < num_experts; ++e) softmax[e] = softmax[e] * inverse;
  return largest + Log(sum);
}

template <typename Real>
SOFTMOE_INLINE Real LogSumExp(const Real* scores, int num_experts,
                              Real largest) {
  return largest + Log(SumOverExperts<Real>(num_experts, [&](int e) {
           return Exp(scores[e] - largest);
         }));
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SOFTMAX_BODY_H_
