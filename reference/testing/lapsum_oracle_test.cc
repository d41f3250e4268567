// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/lapsum_oracle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::reference::testing {
namespace {

// |a - b| < 2^bits.
::testing::AssertionResult Close(const Mpfr& a, const Mpfr& b, long bits) {
  const Mpfr difference = Abs(a - b);
  if (difference < Scale(Mpfr(1.0), bits)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "differ by " << difference.ToDouble() << " at " << a.ToDouble();
}

TEST(Mpfr, HasNinetyDigitsAndAWideExponentRange) {
  EXPECT_TRUE(Close(Exp(Log(Mpfr(3.0))), 3.0, -310));
  const Mpfr tiny = Exp(Mpfr(-1e6));
  EXPECT_GT(tiny.Sign(), 0);
  EXPECT_TRUE(Close(Log(tiny), -1e6, -290));
  EXPECT_EQ((Mpfr(1.0) + Scale(Mpfr(1.0), -300) - Mpfr(1.0)).ToDouble(),
            std::ldexp(1.0, -300));
}

// One score: p = k, so x = r + T ln(1/(2k)) for k <= 1/2, and r + T ln(2(1-k))
// above (SPEC.md 1.2). The root errs by at most 2^-230 T.
TEST(LapSumOracle, OneScoreHasTheKnownRoot) {
  const double r = 0.3, temperature = 0.7;
  for (double k : {1e-9, 0.1, 0.4999, 0.75, 1 - 1e-9}) {
    const OracleSolution got = LapSumOracle({r}, temperature).Solve({k}, r);
    const Mpfr log = k <= 0.5 ? -Log(Mpfr(2.0) * Mpfr(k))
                              : Log(Mpfr(2.0) * (Mpfr(1.0) - Mpfr(k)));
    EXPECT_TRUE(Close(got.root, Mpfr(r) + Mpfr(temperature) * log, -225)) << k;
    EXPECT_TRUE(Close(got.weights[0], k, -225)) << k;
  }
}

// Two scores r > s and k = 1: by symmetry x = (r + s)/2, even where every
// exponential at the root is e^-500000.
TEST(LapSumOracle, TwoScoresAreSplitInTheMiddle) {
  for (double gap : {1e-6, 1.0, 100.0, 1e6}) {
    const Mpfr x = LapSumOracle({gap, 0.0}, 1.0).Solve({1.0}, gap / 3).root;
    EXPECT_TRUE(Close(x, Mpfr(gap / 2), -225)) << gap;
  }
}

// n equal scores: p = k/n.
TEST(LapSumOracle, TiesShareEqually) {
  const LapSumOracle oracle(std::vector<double>(7, -2.5), 1e-3);
  for (const Mpfr& weight : oracle.Solve({3.2}, 40.0).weights) {
    EXPECT_TRUE(Close(weight, Mpfr(3.2) / Mpfr(7.0), -225));
  }
}

TEST(LapSumOracle, ShiftIsAddedToK) {
  const LapSumOracle oracle({1, 0.5, 0.25, -3}, 0.5);
  const Mpfr shifted = oracle.Solve({1.0, 0.25}, 0.0).root;
  const Mpfr direct = oracle.Solve({1.25}, 0.0).root;
  EXPECT_TRUE(Close(shifted, direct, -225));
}

// The first score too, from which the exponents of all are measured.
TEST(LapSumOracle, ChangedScoresAreOthers) {
  const LapSumOracle oracle({1, 0.5, 0.25, -3}, 0.5);
  const Mpfr first = LapSumOracle({3, 0.5, 0.25, -3}, 0.5).Solve({1}, 0).root;
  EXPECT_TRUE(
      Close(oracle.WithScoreChanged(0, 2).Solve({1}, 0).root, first, -225));
  const Mpfr last = LapSumOracle({1, 0.5, 0.25, 2}, 0.5).Solve({1}, 0).root;
  EXPECT_TRUE(
      Close(oracle.WithScoreChanged(3, 5).Solve({1}, 0).root, last, -225));
}

TEST(LapSumOracle, WeightsSumToKForMixedScores) {
  const LapSumOracle oracle({3, -1000, 2.5, 2.5, 1e-9, 700, 0.1}, 0.3);
  const OracleSolution solution = oracle.Solve({2.75}, 0.0);
  Mpfr sum = 0.0;
  for (const Mpfr& weight : solution.weights) sum += weight;
  EXPECT_TRUE(Close(sum, 2.75, -225));
  // The residual is evaluated without the solver's own shortcut.
  const Mpfr step = Scale(Mpfr(0.3), -kRootBits);
  EXPECT_GT(oracle.Residual({2.75}, solution.root - step).Sign(), 0);
  EXPECT_LT(oracle.Residual({2.75}, solution.root + step).Sign(), 0);
}

}  // namespace
}  // namespace softmoe::reference::testing
