// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/slope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::verify {
namespace {

// Uniform in [-1, 1).
double Draw(uint32_t function, uint64_t index) {
  return 2 * UniformFromWord(PhiloxWords({5, RandomStream::kTestData, function},
                                         index)[0]) -
         1;
}

// Every kSharp below is the accuracy that MeasureSlope is asked for, so it must
// reach that where rounding allows. Rounding does: six ulp of numbers below 5
// over a step of 1/64 of the function's scale, twice for the table, are 1e-12
// over that scale, and 8 times as much from one side.
TEST(Slope, SmoothFunctionsAreWithinTheirError) {
  constexpr double kSharp = 1e-11;
  for (uint32_t f = 0; f < 200; ++f) {
    const double a = Draw(f, 0), b = Draw(f, 1), c = Draw(f, 2);
    const Slope slope = MeasureSlope(
        [=](double h) -> Sample {
          return {std::exp(a + b * h) + std::sin(5 * c + h)};
        },
        kSharp);
    const double exact = b * std::exp(a) + std::cos(5 * c);
    EXPECT_EQ(slope.kind, Slope::Kind::kSmooth) << f;
    EXPECT_LE(std::abs(slope.value - exact), slope.error) << f;
    EXPECT_LE(slope.error, kSharp) << f;
  }
}

TEST(Slope, FindsTheStepByItself) {
  // The function varies on a scale of 1e-6.
  constexpr double kSharp = 1e-4;
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::sin(1e6 * h + 1)}; }, kSharp);
  EXPECT_EQ(slope.kind, Slope::Kind::kSmooth);
  EXPECT_LE(std::abs(slope.value - 1e6 * std::cos(1.0)), slope.error);
  EXPECT_LE(slope.error, kSharp);
}

TEST(Slope, IsBetweenTheTwoSidesOfAKink) {
  constexpr double kSharp = 1e-9;
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::exp(h) + 3 * std::abs(h)}; },
      kSharp);
  EXPECT_EQ(slope.kind, Slope::Kind::kKink);
  // The slope jumps from -2 to 4; each side is measured to within kSharp.
  EXPECT_LE(slope.value - slope.error, -2);
  EXPECT_GE(slope.value + slope.error, 4);
  EXPECT_LE(slope.error, 3 + kSharp);
}

// LapSum's weights at a breakpoint: the derivative exists, the curvature jumps.
TEST(Slope, IsSharpWhereOnlyTheCurvatureJumps) {
  constexpr double kSharp = 1e-9;
  for (uint32_t f = 0; f < 100; ++f) {
    const double a = Draw(f, 0), b = 2 + Draw(f, 1);
    const Slope slope = MeasureSlope(
        [=](double h) -> Sample {
          return {std::sin(a + h) + b * h * std::abs(h)};
        },
        kSharp);
    EXPECT_EQ(slope.kind, Slope::Kind::kKink) << f;
    EXPECT_LE(std::abs(slope.value - std::cos(a)), slope.error) << f;
    EXPECT_LE(slope.error, kSharp) << f;
  }
}

TEST(Slope, StepsInFrontOfAKinkThatIsClose) {
  constexpr double kSharp = 1e-8;
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::exp(h) + std::abs(h - 0.01)}; },
      kSharp);
  EXPECT_NE(slope.kind, Slope::Kind::kUndecided);
  EXPECT_LE(std::abs(slope.value - 0), slope.error);
  EXPECT_LE(slope.error, kSharp);
}

// The bend is so small and so close that differences converge across it. Since
// the function reports its pieces, the derivative is within the error;
// otherwise it might not be.
TEST(Slope, IsWithinItsErrorBesideABendThatIsTold) {
  for (uint32_t f = 0; f < 300; ++f) {
    const double a = Draw(f, 0), at = std::exp2(-20 + 10 * Draw(f, 1));
    const double bend = std::exp2(-10 + 10 * Draw(f, 2));
    const Slope slope = MeasureSlope(
        [=](double h) -> Sample {
          const double beyond = std::max(0.0, h - at);
          return {std::sin(a + h) + bend * beyond * beyond, h > at};
        },
        0);
    EXPECT_NE(slope.kind, Slope::Kind::kUndecided) << f;
    EXPECT_LE(std::abs(slope.value - std::cos(a)), slope.error) << f;
  }
}

TEST(Slope, DoesNotDecideAtAJumpNorWithoutADomain) {
  EXPECT_EQ(
      MeasureSlope([](double h) -> Sample { return {h > 0 ? 1.0 : 0.0}; }, 1e-9)
          .kind,
      Slope::Kind::kUndecided);
  EXPECT_EQ(
      MeasureSlope([](double h) -> Sample { return {std::sqrt(h)}; }, 1e-9)
          .kind,
      Slope::Kind::kUndecided);
  // A domain that ends nearby only rules out the larger steps.
  const Slope near = MeasureSlope(
      [](double h) -> Sample {
        if (h < -0.01) throw NumericsError("outside");
        return {std::log1p(h)};
      },
      1e-8);
  EXPECT_EQ(near.kind, Slope::Kind::kSmooth);
  EXPECT_LE(std::abs(near.value - 1), near.error);
}

}  // namespace
}  // namespace softmoe::verify
