// SPDX-License-Identifier: Apache-2.0
//
// The edge cases of SPEC.md 1.2 and the error messages. How accurate the
// numbers are is tested by property_tests/lapsum_oracle_test.cc, and which laws
// they obey by property_tests/lapsum_property_test.cc.
#include "reference/lapsum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::Row;

TEST(LapSumEdge, NothingIsSelectedAtOrBelowZero) {
  const Vector scores = Row({0.5, -1, 3});
  for (double k : {0.0, -0.0, -1e-300, -2.0, -HUGE_VAL}) {
    const LapSum solution = SolveLapSum(scores, k, 2);
    EXPECT_EQ(solution.weights, Vector::Zero(3)) << k;
    EXPECT_EQ(solution.root(), HUGE_VAL);
    // dp/dk by continuity: softmax(r/T), here e^(r-3)/2 normalised. Three
    // exponentials of <= 1 ulp, a sum and a division: below 8 roundings.
    const double z = std::exp(-1.25) + std::exp(-2) + 1;
    EXPECT_NEAR(solution.shares[0], std::exp(-1.25) / z, 8 * kDoubleUnit);
    EXPECT_NEAR(solution.shares[1], std::exp(-2) / z, 8 * kDoubleUnit);
    EXPECT_NEAR(solution.shares[2], 1 / z, 8 * kDoubleUnit);
    const LapSumGradient gradient = LapSumVjp(solution, Row({1, -2, 0.5}));
    EXPECT_EQ(gradient.d_scores, Vector::Zero(3));
    EXPECT_EQ(gradient.d_temperature, 0);
    EXPECT_TRUE(std::isfinite(gradient.d_mean_active));
  }
}

TEST(LapSumEdge, EverythingIsSelectedAtOrAboveN) {
  const Vector scores = Row({0.5, -1, 3});
  for (double k : {3.0, 3.5, HUGE_VAL}) {
    const LapSum solution = SolveLapSum(scores, k, 2);
    EXPECT_EQ(solution.weights, Vector::Ones(3)) << k;
    EXPECT_EQ(solution.root(), -HUGE_VAL);
    // dp/dk: softmax(-r/T).
    const double z = std::exp(-0.75) + 1 + std::exp(-2);
    EXPECT_NEAR(solution.shares[0], std::exp(-0.75) / z, 8 * kDoubleUnit);
    EXPECT_NEAR(solution.shares[1], 1 / z, 8 * kDoubleUnit);
    EXPECT_NEAR(solution.shares[2], std::exp(-2) / z, 8 * kDoubleUnit);
    const LapSumGradient gradient = LapSumVjp(solution, Row({1, -2, 0.5}));
    EXPECT_EQ(gradient.d_scores, Vector::Zero(3));
    EXPECT_EQ(gradient.d_temperature, 0);
  }
}

// The limits are limits: the shares at k = 0 and k = n are approached. Where k
// times the largest softmax is at most 1/2, all scores are below the root and
// the shares are the softmax, whatever k is; only rounding differs.
TEST(LapSumEdge, SharesAreContinuousAtTheEnds) {
  const Vector scores = Row({0.5, -1, 3, 3});
  const Vector at_zero = SolveLapSum(scores, 0, 0.5).shares;
  const Vector near_zero = SolveLapSum(scores, 1e-9, 0.5).shares;
  // An argument, at most ln(n / 1e-9) plus a spread of 8 in size, rounds once,
  // which is the relative error of a density and of the sum of all. No share is
  // above 1/2. The softmax errs as above.
  const double rounding = (2 * (std::log(4 / 1e-9) + 8) / 2 + 8) * kDoubleUnit;
  EXPECT_LE((at_zero - near_zero).cwiseAbs().maxCoeff(), rounding);
  const Vector at_n = SolveLapSum(scores, 4, 0.5).shares;
  const Vector near_n = SolveLapSum(scores, 4 - 1e-9, 0.5).shares;
  EXPECT_LE((at_n - near_n).cwiseAbs().maxCoeff(), rounding);
}

// One score: p = k and dp/dk = 1, whatever the score; x = r + T ln(1/(2k)) or
// r + T ln(2(1-k)). The weight is e^ln(...): a logarithm and an exponential of
// <= 1 ulp each and |ln| roundings in between.
TEST(LapSumEdge, OneScoreGetsAllOfK) {
  for (double score : {0.0, -1e6, 1e300}) {
    for (double k : {1e-9, 0.25, 0.5, 0.75, 1 - 1e-9}) {
      const LapSum solution = SolveLapSum(Row({score}), k, 0.25);
      EXPECT_NEAR(solution.weights[0], k, 8 * kDoubleUnit);
      EXPECT_EQ(solution.shares[0], 1);
      EXPECT_EQ(solution.anchor, score);
      EXPECT_NEAR(solution.offset,
                  k <= 0.5 ? -std::log(2 * k) : std::log(2 * (1 - k)),
                  4 * kDoubleUnit * std::max(1.0, std::abs(solution.offset)));
      const LapSumGradient gradient = LapSumVjp(solution, Row({3}));
      EXPECT_EQ(gradient.d_mean_active, 3);
      EXPECT_EQ(gradient.d_scores[0], 0);
      EXPECT_EQ(gradient.d_temperature, 0);
    }
  }
}

TEST(LapSumEdge, SmallestKIsSpreadWithoutOverflow) {
  const double k = std::numeric_limits<double>::denorm_min();
  const LapSum solution = SolveLapSum(Row({1, 1}), k, 1);
  EXPECT_TRUE(std::isfinite(solution.offset));
  EXPECT_LE(solution.weights.sum(), 2 * k);
  EXPECT_EQ(solution.shares, Row({0.5, 0.5}));
  // Where k / 2 still has all its bits: the offset, about 1000 log 2, is off by
  // two roundings of its own size, and so are the logarithms of the weights.
  const double normal = 0x1p-1000;
  const Vector weights = SolveLapSum(Row({1, 1}), normal, 1).weights;
  EXPECT_NEAR(weights.sum() / normal, 1, 4 * 694 * kDoubleUnit);
}

// T -> 0: hard top-k; the fraction of k goes to the next score, and is shared
// by scores that tie for it.
TEST(LapSumEdge, LowTemperatureIsHardTopK) {
  const Vector scores = Row({5, 1, 4, 3, 2});
  EXPECT_EQ(SolveLapSum(scores, 2, 1e-4).weights, Row({1, 0, 1, 0, 0}));
  const Vector fractional = SolveLapSum(scores, 2.25, 1e-4).weights;
  EXPECT_EQ(fractional[0], 1);
  EXPECT_EQ(fractional[2], 1);
  EXPECT_NEAR(fractional[3], 0.25, 4 * kDoubleUnit);
  EXPECT_EQ(fractional[1], 0);
  const Vector tied = SolveLapSum(Row({5, 3, 4, 3, 2}), 2.5, 1e-4).weights;
  EXPECT_NEAR(tied[1], 0.25, 4 * kDoubleUnit);
  EXPECT_EQ(tied[1], tied[3]);
  const Vector all = SolveLapSum(Row({5, 5, 0}), 1.5, 1e-4).weights;
  EXPECT_NEAR(all[0], 0.75, 4 * kDoubleUnit);
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], 0);
}

// Gaps of 1e6, of 1e308 and of more than the largest double (in units of T):
// no inf - inf, and at integer k the shares are still those of the two ends,
// half to each.
TEST(LapSumEdge, HugeGapsStayFinite) {
  for (double score : {1e3, 1e300, 1.7e308}) {
    const Vector scores = Row({score, score, -score, -score, -score});
    const LapSum solution = SolveLapSum(scores, 2, 1e-3);
    EXPECT_EQ(solution.weights, Row({1, 1, 0, 0, 0})) << score;
    const Vector expected = Row({0.25, 0.25, 1. / 6, 1. / 6, 1. / 6});
    for (int i = 0; i < 5; ++i) {
      EXPECT_NEAR(solution.shares[i], expected[i], 4 * kDoubleUnit) << score;
    }
    EXPECT_EQ(LapSumRootGradient(solution).d_mean_active, -HUGE_VAL);
    const LapSumGradient gradient = LapSumVjp(solution, Row({1, 2, 3, 4, 5}));
    EXPECT_EQ(gradient.d_scores, Vector::Zero(5));
    EXPECT_EQ(gradient.d_temperature, 0);
    const Vector fractional = SolveLapSum(scores, 2.5, 1e-3).weights;
    EXPECT_EQ(fractional[0], 1);
    EXPECT_NEAR(fractional[4], 0.5 / 3, 4 * kDoubleUnit);
  }
}

// At whole k the two halves of the gap cancel in x~ and in dx~/dT, which are
// ln(2)/2 here, but each is first rounded at its own size. Weights and shares
// are measured from the two ends of the gap, and lose nothing.
TEST(LapSumEdge, TheRootLosesDigitsToAGapAtWholeK) {
  for (double score : {1e3, 1e7, 1e12, 1e14}) {
    const LapSum solution = SolveLapSum(Row({score, -score, -score}), 1, 1);
    const double rounding = 4 * kDoubleUnit * (2 * score);
    EXPECT_NEAR(LapSumRootGradient(solution).d_temperature, std::log(2) / 2,
                rounding + 4 * kDoubleUnit)
        << score;
    EXPECT_NEAR(solution.root(), std::log(2) / 2, rounding + 4 * kDoubleUnit)
        << score;
    EXPECT_EQ(solution.weights, Row({1, 0, 0})) << score;
    EXPECT_NEAR(solution.shares[0], 0.5, 4 * kDoubleUnit) << score;
    EXPECT_NEAR(solution.shares[1], 0.25, 4 * kDoubleUnit) << score;
  }
}

// k = j exactly, and e^-(gap/2) underflows: d = 0 and h = 0.
TEST(LapSumEdge, IntegerKInAGapHasItsRootInTheMiddle) {
  const LapSum solution = SolveLapSum(Row({2000, 0}), 1, 1);
  EXPECT_EQ(solution.anchor, 2000);
  EXPECT_EQ(solution.offset, -1000);
  EXPECT_EQ(solution.root(), 1000);
  EXPECT_EQ(solution.shares, Row({0.5, 0.5}));
}

TEST(LapSumMask, MaskedScoresAreDroppedFromTheProblem) {
  const LapSum masked =
      SolveLapSum(Row({-HUGE_VAL, 1, 0.5, -HUGE_VAL, -2}), 1.75, 0.5);
  const LapSum plain = SolveLapSum(Row({1, 0.5, -2}), 1.75, 0.5);
  EXPECT_EQ(masked.weights[0], 0);
  EXPECT_EQ(masked.weights[3], 0);
  EXPECT_EQ(masked.weights[1], plain.weights[0]);
  EXPECT_EQ(masked.weights[2], plain.weights[1]);
  EXPECT_EQ(masked.weights[4], plain.weights[2]);
  const LapSumGradient gradient =
      LapSumVjp(masked, Row({7, 0.3, -0.4, -9, 0.5}));
  const LapSumGradient expected = LapSumVjp(plain, Row({0.3, -0.4, 0.5}));
  EXPECT_EQ(gradient.d_scores[0], 0);
  EXPECT_EQ(gradient.d_scores[3], 0);
  EXPECT_EQ(gradient.d_scores[1], expected.d_scores[0]);
  EXPECT_EQ(gradient.d_mean_active, expected.d_mean_active);
  EXPECT_EQ(gradient.d_temperature, expected.d_temperature);
  const Vector moved = LapSumJvp(masked, Row({1, 1, 2, 1, 3}), 0.5, 0.25);
  EXPECT_EQ(moved[0], 0);
  EXPECT_EQ(SolveLapSum(Row({-HUGE_VAL, 1}), 0, 1).weights, Row({0, 0}));
  EXPECT_EQ(SolveLapSum(Row({-HUGE_VAL, 1}), 0, 1).shares, Row({0, 1}));
}

template <typename ErrorType>
void ExpectError(const Vector& scores, double k, double temperature,
                 const std::string& part) {
  EXPECT_TRUE(
      Says(MessageOf<ErrorType>([&] { SolveLapSum(scores, k, temperature); }),
           part));
}

TEST(LapSumErrors, NameTheElementAndTheRemedy) {
  const double nan = std::nan("");
  ExpectError<NumericsError>(Row({0, nan, 1}), 1, 1, "score 1 of 3 is nan");
  ExpectError<NumericsError>(Row({0, 1, HUGE_VAL}), 1, 1,
                             "score 2 of 3 is inf");
  // Refused even where the answer would not depend on the scores.
  ExpectError<NumericsError>(Row({nan}), 0, 1, "score 0 of 1 is nan");
  ExpectError<NumericsError>(Row({0, 1}), nan, 1, "mean_active is NaN");
  for (double temperature : {0.0, -1.0, nan, HUGE_VAL}) {
    ExpectError<ConfigError>(Row({0, 1}), 1, temperature, "temperature is");
  }
  ExpectError<ConfigError>(Row({0, -HUGE_VAL, 1}), 2, 1,
                           "2 of 3 scores are finite");
  ExpectError<ConfigError>(Row({0, -HUGE_VAL, 1}), 2.5, 1, "mask fewer");
  ExpectError<ConfigError>(Row({-HUGE_VAL}), 0, 1, "0 of 1 scores");
  ExpectError<ConfigError>(Vector(), 0, 1, "0 of 0 scores");
}

}  // namespace
}  // namespace softmoe::reference
