// SPDX-License-Identifier: Apache-2.0
//
// laplace.h - the Laplace distribution function and its density (reference).
//
//   F(u) = e^u / 2 (u <= 0),  1 - e^-u / 2 (u > 0)        SPEC.md 1.1
//   f(u) = F'(u) = e^-|u| / 2 = min(F(u), 1 - F(u))
//
// F is once continuously differentiable: f has a kink at u = 0. Both are total:
// F(-inf) = 0, F(inf) = 1, and an exponential is only taken of a number <= 0.
#ifndef SOFTMOE_REFERENCE_LAPLACE_H_
#define SOFTMOE_REFERENCE_LAPLACE_H_

#include <cmath>

namespace softmoe::reference {

// F(u) over any scalar: double, or Dual (dual.h).
template <typename Scalar>
Scalar LaplaceCdfOf(Scalar u) {
  using std::exp;
  return u <= 0 ? 0.5 * exp(u) : 1 - 0.5 * exp(-u);
}

// f(u) over any scalar.
template <typename Scalar>
Scalar LaplacePdfOf(Scalar u) {
  using std::abs, std::exp;
  return 0.5 * exp(-abs(u));
}

// Returns F(u), in [0, 1]. Its derivative is LaplacePdf.
inline double LaplaceCdf(double u) { return LaplaceCdfOf(u); }

// Returns f(u), in [0, 1/2].
inline double LaplacePdf(double u) { return LaplacePdfOf(u); }

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LAPLACE_H_
