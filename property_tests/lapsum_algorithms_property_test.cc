// SPDX-License-Identifier: Apache-2.0
//
// Law 19 of SPEC.md 1.5: five algorithms give the same weights. The reference
// (A) sums with compensation; the others do not, which moves their offsets by
// the rounding of n additions: sums of n terms err by n u relative, and the
// offset is the logarithm of a quotient of two of them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdio>

#include "property_tests/testing/generators.h"
#include "property_tests/testing/lapsum_algorithms.h"
#include "property_tests/testing/lapsum_bounds.h"

namespace softmoe::property_tests {
namespace {

using reference::LapSum;
using reference::Vector;

// Asserts that `result` agrees with the reference, whose offset errs by at most
// RootBound; its own may err by `extra` u more.
void AssertAgrees(const LapSumCase& c, const AlgorithmResult& result,
                  double extra) {
  const LapSum s = Solve(c);
  const Vector bounds = WeightBounds(s) + WeightBounds(s, extra);
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(std::abs(s.weights[i] - result.weights[i]) <= bounds[i]);
  }
}

// B. The iterates fall monotonically (cosh w >= 1, NOTATION.md#lapsum): none
// turns back by more than rounding. There are at most n + 1, plus one to see
// that nothing changes.
RC_GTEST_PROP(LapSumLaw, Law19MonotoneIterationAgrees, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const AlgorithmResult result =
      MonotoneIteration(c.scores, c.mean_active, c.temperature);
  RC_ASSERT(result.steps <= c.n() + 2);
  RC_CLASSIFY(result.steps <= 2, "at most 2 steps");
  const LapSum s = Solve(c);
  RC_ASSERT(result.overshoot <= 2 * RootBound(s) + 4 * c.n() * kDoubleUnit);
  AssertAgrees(c, result, 2 * c.n());
}

// C. S at a score is a sum of n terms <= 1, so a segment may be chosen wrongly
// within n^2 u; leaving it by w is a second-order effect, (n^2 u)^2:
// negligible.
RC_GTEST_PROP(LapSumLaw, Law19AllPairsAgrees, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  AssertAgrees(c, AllPairs(c.scores, c.mean_active, c.temperature), 2 * c.n());
}

// D. Its recurrences multiply m <= n exponentials, each off by 2u and by u
// times its exponent, on top of the tail's sum.
RC_GTEST_PROP(LapSumLaw, Law19PartialSelectionAgrees, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  AssertAgrees(c, PartialSelection(c.scores, c.mean_active, c.temperature),
               12 * c.n());
}

// Bisection. All weights move the same way with x, so |p - p*| <= |S(x) - k|.
// It ends where rounding decides: terms err by u (2 f|u| + 2f + 1/2), and the
// grid of x and its subtraction from a score by u (|x| + |r - x|)/T in u.
RC_GTEST_PROP(LapSumLaw, Law19BisectionAgrees, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const AlgorithmResult result =
      Bisection(c.scores, c.mean_active, c.temperature);
  double residual = 0, grid = 0;
  for (int i = 0; i < c.n(); ++i) {
    const double f = s.densities[i], u = std::abs(s.arguments[i]);
    residual += kDoubleUnit * (0.5 + (f > 0 ? f * (4 * u + 4) : 0));
    grid = std::max(grid, std::abs(c.scores[i]) / c.temperature);
  }
  grid = kDoubleUnit * (4 * grid + 4 * std::abs(s.offset) + 4);
  const Vector bounds = WeightBounds(s);
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(std::abs(s.weights[i] - result.weights[i]) <=
              2 * bounds[i] + residual + 2 * grid * s.densities[i] +
                  grid * grid);
  }
}

}  // namespace
}  // namespace softmoe::property_tests
