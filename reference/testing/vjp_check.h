// SPDX-License-Identifier: Apache-2.0
//
// vjp_check.h - holds a hand-written gradient against finite differences.
//
// For an operation y = f(x_1, ..., x_n) and a random cotangent w, the function
// h -> <w, f(x + h u)> must have the derivative <vjp(x, w), u> at 0: for random
// directions u over all inputs at once, and over each input by itself. The
// cotangent is random because an all-ones one is blind wherever outputs sum to
// a constant, as soft weights do.
#ifndef SOFTMOE_REFERENCE_TESTING_VJP_CHECK_H_
#define SOFTMOE_REFERENCE_TESTING_VJP_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/matrix.h"
#include "reference/testing/finite_difference.h"

namespace softmoe::reference::testing {

// Says why `analytic` is not the derivative that `estimate` found; "" if it is.
//
//   analytic_scale  sum of |gradient_i * direction_i|, what rounding in the
//                   analytic derivative is relative to
// Besides disagreement, it is a defect if the function is not smooth, and if
// the estimate is too blurred to mean anything: error > 1e-6 * analytic_scale.
std::string DerivativeMismatch(const DerivativeEstimate& estimate,
                               double analytic, double analytic_scale);

using Matrices = std::vector<Matrix>;

// Says why `vjp` is not the gradient of `f` at `inputs`; "" if it is.
//
//   f    inputs -> output
//   vjp  inputs, cotangent (shaped like the output) -> one gradient per input
// Tries three random directions over all inputs and two over each by itself,
// each with a cotangent of its own; components are of size 1, and so should
// the scale be on which f varies.
std::string VjpMismatch(
    const std::function<Matrix(const Matrices&)>& f,
    const std::function<Matrices(const Matrices&, const Matrix&)>& vjp,
    const Matrices& inputs, uint64_t seed);

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_VJP_CHECK_H_
