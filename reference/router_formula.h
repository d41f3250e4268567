// SPDX-License-Identifier: Apache-2.0
//
// router_formula.h - the cutoff and the gates of router.h over any scalar
// (scalar.h); their soft weights are lapsum_formula.h and softmax_formula.h.
#ifndef SOFTMOE_REFERENCE_ROUTER_FORMULA_H_
#define SOFTMOE_REFERENCE_ROUTER_FORMULA_H_

#include "reference/matrix.h"

namespace softmoe::reference::formula {

// tau k_l / E
template <typename N>
N Cutoff(const N& tau, const N& mean_active, int64_t num_experts) {
  return tau * mean_active / static_cast<double>(num_experts);
}

// T[p]: the weights of the active experts, 0 elsewhere. As the set is held
// fixed, the gradient is masked in the same way.
template <typename N>
MatrixOf<N> Gates(const BoolMatrix& active, const MatrixOf<N>& soft_weights) {
  MatrixOf<N> gates(active.rows(), active.cols());
  for (int64_t t = 0; t < active.rows(); ++t) {
    for (int64_t e = 0; e < active.cols(); ++e) {
      gates(t, e) = active(t, e) ? soft_weights(t, e) : N(0);
    }
  }
  return gates;
}

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_ROUTER_FORMULA_H_
