// SPDX-License-Identifier: Apache-2.0
//
// Dual numbers: derivatives that are known, errors that hold, and the bits of
// double.
#include "reference/dual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "reference/lapsum.h"
#include "reference/lapsum_root.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

// Every operation at once, and its derivative by hand.
template <typename Scalar>
Scalar Everything(Scalar x) {
  using std::exp, std::log, std::sqrt, std::hypot, std::abs;
  return exp(-x) * sqrt(x + 2) - log(3 + x) / (1 - x * x) +
         hypot(x, Scalar(2)) - abs(x - 1);
}
// The terms that add up to the derivative.
Eigen::Array<double, 6, 1> EverythingDerivative(double x) {
  const double divisor = 1 - x * x;
  return {-std::exp(-x) * std::sqrt(x + 2),
          std::exp(-x) / (2 * std::sqrt(x + 2)),
          -1 / (3 + x) / divisor,
          -2 * x * std::log(3 + x) / (divisor * divisor),
          x / std::hypot(x, 2.0),
          x < 1 ? 1. : -1.};
}

TEST(Dual, HasTheBitsOfDoubleAndTheDerivative) {
  const Matrix draws = testing::RandomMatrix(1, 200, 3, 0);
  for (Eigen::Index i = 0; i < draws.size(); ++i) {
    const double x = 0.4 * draws(0, i);
    if (std::abs(x) > 0.9) continue;
    Dual at = x;
    at.slope = 3;
    const Dual y = Everything(at);
    EXPECT_EQ(y.value.value, Everything(x));
    const auto terms = EverythingDerivative(x);
    const double exact = 3 * terms.sum();
    // The derivative by hand has as many roundings.
    EXPECT_LE(std::abs(y.slope.value - exact), 2 * y.slope.error) << x;
    // The quotient's slope takes the longest path: log (2) of a rounded
    // argument (less than 2), a division, the divisor's slope (3), a product, a
    // difference, a division and 3 sums; twice the divisor, which cancels.
    const double divisor = 1 + x * x / (1 - x * x);
    EXPECT_LE(y.slope.error, (2 + 2 + 1 + 3 + 1 + 1 + 1 + 3 + 2 * divisor) *
                                 Approximate::kRoundoff * 3 *
                                 terms.abs().sum());
    EXPECT_GT(y.slope.error, 0);
  }
}

// The bound covers cancellation: (1 + x) - 1 of an x that is rounded away.
TEST(Dual, KnowsHowMuchItDoesNotKnow) {
  Dual x = 1e-20;
  x.slope = 1;
  const Dual lost = (1.0 + x) - 1.0;
  EXPECT_EQ(lost.value.value, 0);
  EXPECT_GE(lost.value.error, 1e-20);
  EXPECT_EQ(lost.slope.value, 1);
  const Dual quotient = 1.0 / lost;
  EXPECT_FALSE(std::isfinite(quotient.slope.error));
}

TEST(Dual, SumsWithTheBitsOfTheCompensatedSum) {
  CompensatedSum sum;
  CompensatedSum<Dual> duals;
  const Matrix terms = testing::RandomMatrix(1, 100, 4, 0);
  for (Eigen::Index i = 0; i < terms.size(); ++i) {
    sum.Add(terms(0, i));
    Dual term = terms(0, i);
    term.slope = terms(0, i);
    duals.Add(term);
  }
  EXPECT_EQ(duals.Get().value.value, sum.Get());
  EXPECT_EQ(duals.Get().slope.value, sum.Get());
  // The terms are exact, so u |sum| is left, and the error of compensation,
  // twice because that is rounded, too.
  EXPECT_LE(duals.Get().slope.error,
            Approximate::kRoundoff * std::abs(sum.Get()) +
                2 * std::pow(100 * Approximate::kRoundoff, 2) *
                    terms.cwiseAbs().sum());
}

// The closed form's derivative against the implicit one of LapSumRootGradient,
// also at integer k, where asinh(d/h) is 0 and its derivative is not.
TEST(Dual, MovesTheRootOfLapSumAsTheImplicitFunctionTheoremSays) {
  for (const double k : {0.4, 1.0, 2.0, 3.7, 6.5}) {
    for (uint32_t draw = 0; draw < 20; ++draw) {
      const Matrix scores = testing::RandomMatrix(1, 7, 5, draw);
      const Matrix moves = testing::RandomMatrix(1, 7, 6, draw);
      const LapSum solution = SolveLapSum(scores.row(0), k, 1.3);
      const LapSumGradient gradient = LapSumRootGradient(solution);
      double expected =
          0.7 * gradient.d_mean_active + 0.2 * gradient.d_temperature;
      double magnitude = 0.7 * std::abs(gradient.d_mean_active) +
                         0.2 * std::abs(gradient.d_temperature);
      std::vector<Dual> sorted;
      for (Eigen::Index i = 0; i < 7; ++i) {
        expected += moves(0, i) * gradient.d_scores[i];
        magnitude += std::abs(moves(0, i) * gradient.d_scores[i]);
        sorted.emplace_back(Approximate(scores(0, i)),
                            Approximate(moves(0, i)));
      }
      std::sort(sorted.begin(), sorted.end(), std::greater<Dual>());
      const Dual temperature(Approximate(1.3), Approximate(0.2));
      const LapSumRoot<Dual> root = SolveLapSumRoot(
          sorted, Dual(Approximate(k), Approximate(0.7)), temperature);
      const Dual x = root.anchor + temperature * root.offset;
      EXPECT_EQ(x.value.value, solution.root());
      // The expected value has a dozen roundings of numbers of this size.
      EXPECT_LE(std::abs(x.slope.value - expected),
                x.slope.error +
                    64 * Approximate::kRoundoff * std::abs(expected) +
                    64 * Approximate::kRoundoff)
          << "k = " << k << ", draw " << draw;
      // The bound is sharp: from a score to the root there are some 60
      // operations (differences, exponentials, sums, the root of the product,
      // hypot, log), each on numbers that err in value and in slope.
      EXPECT_LE(x.slope.error, 2 * 64 * Approximate::kRoundoff * magnitude);
    }
  }
}

}  // namespace
}  // namespace softmoe::reference
