// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/finite_difference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::reference::testing {
namespace {

// The error of an observed order: kUsable = 8 bounds it by log2(1.125 / 0.875).
const double kOrderError = std::log2(1.125 / 0.875);

// The rounding error of a difference at `step` of values below `size`: six
// standard deviations, of an ulp at most.
double RoundingOf(double size, double step) {
  return 6 * size * std::numeric_limits<double>::epsilon() / step;
}

double Uniform(uint32_t function, uint64_t index) {
  const RandomKey key{17, RandomStream::kTestData, function};
  return 2 * UniformFromWord(PhiloxWords(key, index)[0]) - 1;
}

// 300 random smooth functions with known derivatives: the estimate is within
// its own error, the error is small, and the order is that of central
// differences. The error is an estimate, not a bound, but it is dominated by
// the penultimate column of the table, so a miss would be a defect.
TEST(FiniteDifference, SmoothFunctionsAreWithinTheirOwnError) {
  for (uint32_t f = 0; f < 300; ++f) {
    const double a = Uniform(f, 0), b = 1.5 * Uniform(f, 1), c = Uniform(f, 2),
                 d = Uniform(f, 3);
    auto phi = [=](double h) {
      return std::exp(a + b * h) + std::sin(3 * c + 2 * d * h) +
             1 / (2 + std::tanh(h + a));
    };
    const double t = std::tanh(a);
    const double exact = b * std::exp(a) + 2 * d * std::cos(3 * c) -
                         (1 - t * t) / ((2 + t) * (2 + t));
    const DerivativeEstimate estimate = DifferentiateAtZero(phi, 0.125);
    EXPECT_EQ(estimate.smoothness, Smoothness::kSmooth) << f;
    EXPECT_LE(std::abs(estimate.value - exact), estimate.error) << f;
    // The table can choose a step of 1/128 with three extrapolations.
    EXPECT_LE(estimate.error, 2 * RoundingOf(6, 1. / 128)) << f;
  }
}

TEST(FiniteDifference, CubicConvergesWithOrderTwo) {
  const DerivativeEstimate estimate = DifferentiateAtZero(
      [](double h) { return 1 + 2 * h + 3 * h * h + 5 * h * h * h; }, 0.5);
  EXPECT_EQ(estimate.smoothness, Smoothness::kSmooth);
  EXPECT_NEAR(estimate.observed_order, 2, kOrderError);
  EXPECT_LE(std::abs(estimate.value - 2), estimate.error);
}

TEST(FiniteDifference, QuadraticHasNoObservableOrder) {
  const DerivativeEstimate estimate =
      DifferentiateAtZero([](double h) { return 4 - h + 8 * h * h; }, 0.5);
  EXPECT_EQ(estimate.smoothness, Smoothness::kSmooth);
  EXPECT_TRUE(std::isnan(estimate.observed_order));
  EXPECT_LE(std::abs(estimate.value + 1), estimate.error);
}

TEST(FiniteDifference, ConstantHasDerivativeZero) {
  const DerivativeEstimate estimate =
      DifferentiateAtZero([](double) { return 7.0; }, 0.5);
  EXPECT_EQ(estimate.smoothness, Smoothness::kSmooth);
  EXPECT_EQ(estimate.value, 0);
}

// Central differences of |h| + h converge perfectly, to a slope that exists on
// neither side: only the two one-sided slopes show the kink.
TEST(FiniteDifference, KinkAtThePointIsSeenAndBracketed) {
  const DerivativeEstimate estimate = DifferentiateAtZero(
      [](double h) { return std::exp(h) + std::abs(h); }, 0.125);
  EXPECT_EQ(estimate.smoothness, Smoothness::kKink);
  // One-sided slopes at step s are off by s/2 * sup|phi''| at most.
  const double truncation = 0.125 / 2 * std::exp(0.125);
  EXPECT_NEAR(estimate.left_slope, 0, truncation);
  EXPECT_NEAR(estimate.right_slope, 2, truncation);
}

TEST(FiniteDifference, KinkInsideTheFinestStencilIsNotSmooth) {
  const double step = 0.125;
  const double finest = step / 512;
  for (double where : {0.3 * finest, -0.7 * finest, 0.99 * finest}) {
    const DerivativeEstimate estimate = DifferentiateAtZero(
        [=](double h) { return std::exp(h) + std::max(0.0, h - where); }, step);
    EXPECT_NE(estimate.smoothness, Smoothness::kSmooth) << where;
  }
}

// max(0, h - c)^2 has a slope everywhere, but its curvature jumps at c: the
// table's error estimate means nothing while c is among the fine steps. Either
// that is noticed, or the estimate is within its error after all.
TEST(FiniteDifference, CurvatureThatJumpsCloseByIsNotTrusted) {
  const double step = 0.125;
  int noticed = 0;
  for (int i = 0; i < 200; ++i) {
    const double where = step / 512 * std::exp2(0.05 * i - 1);
    const DerivativeEstimate estimate = DifferentiateAtZero(
        [=](double h) {
          const double excess = std::max(0.0, h - where);
          return std::sin(1 + h) + excess * excess;
        },
        step);
    if (estimate.smoothness != Smoothness::kSmooth) {
      ++noticed;
    } else {
      EXPECT_LE(std::abs(estimate.value - std::cos(1.0)), estimate.error)
          << where;
    }
  }
  EXPECT_GT(noticed, 20);
}

// A kink that only the coarse steps see does no harm: fine steps decide.
TEST(FiniteDifference, KinkOutsideTheFineStepsDoesNoHarm) {
  const DerivativeEstimate estimate = DifferentiateAtZero(
      [](double h) { return std::exp(h) + std::max(0.0, h - 0.03); }, 0.125);
  EXPECT_EQ(estimate.smoothness, Smoothness::kSmooth);
  EXPECT_LE(std::abs(estimate.value - 1), estimate.error);
  // The table is left with three extrapolations, down to a step of 1/512.
  EXPECT_LE(estimate.error, 2 * RoundingOf(std::exp(0.125), 1. / 512));
}

TEST(FiniteDifference, JumpIsSeen) {
  for (double size : {1.0, -1e-3, 1e-6}) {
    const DerivativeEstimate estimate = DifferentiateAtZero(
        [=](double h) { return std::sin(h) + (h > 0 ? size : 0); }, 0.125);
    EXPECT_EQ(estimate.smoothness, Smoothness::kJump) << size;
  }
}

// sin(a + h) + b h |h|: the derivative at 0 exists, the curvature jumps. Each
// side by itself converges to it.
TEST(OneSidedDifference, IsSharpWhereTheCurvatureJumps) {
  for (uint32_t f = 0; f < 300; ++f) {
    const double a = Uniform(f, 0), b = 2 + Uniform(f, 1);
    auto phi = [=](double h) { return std::sin(a + h) + b * h * std::abs(h); };
    EXPECT_NE(DifferentiateAtZero(phi, 0.125).smoothness, Smoothness::kSmooth);
    for (const double step : {0.125, -0.125}) {
      const OneSidedEstimate estimate = DifferentiateFromOneSide(phi, step);
      EXPECT_TRUE(estimate.converges) << f;
      EXPECT_LE(std::abs(estimate.value - std::cos(a)), estimate.error) << f;
      // Six extrapolations remain, each of half the step, down to 1/512.
      EXPECT_LE(estimate.error, 8.3 * 2 * RoundingOf(1.05, 1. / 512)) << f;
    }
  }
}

TEST(OneSidedDifference, FindsBothSlopesOfAKinkAndNoneOfAJump) {
  auto kink = [](double h) { return std::exp(h) + 2 * std::abs(h); };
  const OneSidedEstimate right = DifferentiateFromOneSide(kink, 0.125);
  const OneSidedEstimate left = DifferentiateFromOneSide(kink, -0.125);
  EXPECT_TRUE(right.converges && left.converges);
  EXPECT_LE(std::abs(right.value - 3), right.error);
  EXPECT_LE(std::abs(left.value + 1), left.error);
  EXPECT_NEAR(right.observed_order, 1, kOrderError);
  EXPECT_FALSE(DifferentiateFromOneSide(
                   [](double h) { return h > 0 ? h + 1 : h; }, 0.125)
                   .converges);
}

// A wrong derivative must fall outside the error: the tool can fail a test.
TEST(FiniteDifference, SeparatesDerivativesThatDifferByOnePartInABillion) {
  const DerivativeEstimate estimate =
      DifferentiateAtZero([](double h) { return std::exp(2 * h); }, 0.125);
  EXPECT_LE(std::abs(estimate.value - 2), estimate.error);
  EXPECT_GT(std::abs(estimate.value - 2 * (1 + 1e-9)), estimate.error);
}

// Rounding to float makes errors uniform in half an ulp either way: standard
// deviation ulp/sqrt(12), ulp = 2^-24 for values in [1/2, 1). Hamming's mean of
// a dozen correlated differences is good to a factor of two.
TEST(RoundingNoise, MeasuresTheRoundingOfFloat) {
  const double expected = 0x1p-24 / std::sqrt(12.0);
  const double noise = RoundingNoise(
      [](double h) {
        return static_cast<double>(static_cast<float>(0.7 + std::sin(h)));
      },
      1e-3);
  EXPECT_GT(noise, expected / 2);
  EXPECT_LT(noise, expected * 2);
}

TEST(RoundingNoise, IsAtLeastHalfAnUlpAndIgnoresAJumpAtZero) {
  const double noise =
      RoundingNoise([](double h) { return h > 0 ? 1.0 : 2.0; }, 1e-6);
  EXPECT_EQ(noise, std::numeric_limits<double>::epsilon() / 2);
}

TEST(FiniteDifference, NoisyFunctionsGetALargerError) {
  auto noisy = [](double h) {
    return static_cast<double>(static_cast<float>(std::exp(h)));
  };
  const DerivativeEstimate estimate = DifferentiateAtZero(noisy, 0.3);
  EXPECT_LE(std::abs(estimate.value - 1), estimate.error);
  // The noise of floats below 1, as above, at the largest step at best.
  const double noise = 0x1p-24 / std::sqrt(12.0) / 2;
  EXPECT_GT(estimate.error, 2 * 6 * noise / 0.3);
}

TEST(FiniteDifference, NonFiniteValuesAreRefused) {
  EXPECT_THROW(DifferentiateAtZero([](double h) { return std::log(h); }, 0.125),
               NumericsError);
  EXPECT_THROW(DifferentiateAtZero([](double h) { return h; }, 0),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference::testing
