// SPDX-License-Identifier: Apache-2.0
//
// lapsum_bounds.h - how far the computed LapSum may be from the exact one.
//
// Forward error analysis of reference/lapsum.h, u = 2^-53; every operation errs
// by u, exp and log by 2u (1 ulp), sums are compensated. With
// w_i = (r_i - anc)/T and u_i = w_i - t:
//
//   w_i    relative 2u (one subtraction, one division)
//   a, b   terms e^-w err by 2u w + 2u; the mean of w under weights e^-w with
//          one w = 0 is at most ln n (Gibbs), so relative 4u + 2u ln n
//   h      e^{-Delta/2}: u Delta + 2u, sqrt and product 2u, sqrt(ab) as a
//   t      logarithm of a quotient of these: absolute
//            (4 + 2 ln n)u [numerator] + (4 + 2 ln n)u [denominator] + u Delta
//            + a few u, + u|t| for its own rounding. The u Delta counts only
//            where h is not negligible against d, and there
//            Delta <= 2|t| + ln n
//          -> |dt| <= u (14 + 5 ln n + 3|t|)                     RootBound
//   u_i    2u|w_i| + u|u_i| + |dt| <= u (3|u_i| + 5|t| + 14 + 5 ln n)
//   p_i    f_i |du_i| + 2u f_i + u/2 [1 - f is rounded, if u_i > 0]
//          -> u (f_i (3|u_i| + 5|t| + 16 + 5 ln n) + 1/2)      WeightBounds
//
// f_i |u_i| <= 1/(2e), and f_i |t| <= (ln n)/2 + 1/(2e) because d > 0 puts the
// root in the upper half of the gap (t >= -Delta/2 - (ln n)/2): the bound is
// below u (18 + 5 ln n), 5e-15 at n = 256, whatever the scores.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_BOUNDS_H_

#include <vector>

#include "core/testing/bounded.h"
#include "property_tests/testing/generators.h"
#include "reference/lapsum.h"

namespace softmoe::property_tests {

// If a result underflows, its error is absolute.
inline constexpr double kTiny = 0x1p-1020;

reference::Vector ToVector(const std::vector<double>& values);

// Calls SolveLapSum for a case.
reference::LapSum Solve(const LapSumCase& lapsum_case);

// Bound on |p_i - exact| of every weight.
reference::Vector WeightBounds(const reference::LapSum& solution);

// Bound on |t - exact|, the root's error in units of T.
double RootBound(const reference::LapSum& solution);

// (root of a - root of b)/T without the cancellation of r/T, for two solutions
// with the same temperature.
double RootDifference(const reference::LapSum& a, const reference::LapSum& b);

// Bound on |RootDifference - exact|.
double RootDifferenceBound(const reference::LapSum& a,
                           const reference::LapSum& b);

// Densities and shares are two computations of the same thing: f_i = q_i sum f
// up to a relative u(2|u_i| + 2|t| + 16). Returns the sum of f_i times this
// error: what a sum of f_i c_i that should cancel may leave, per unit of
// max|c|.
double DensityShareBound(const reference::LapSum& solution);

// A sum with compensation, so that the test's own rounding does not count.
double SumOf(const reference::Vector& values);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_BOUNDS_H_
