// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/slope.h"

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

TEST(Slope, SmoothFunctionsAreWithinTheirError) {
  for (uint32_t f = 0; f < 200; ++f) {
    const double a = Draw(f, 0), b = Draw(f, 1), c = Draw(f, 2);
    const Slope slope = MeasureSlope(
        [=](double h) -> Sample {
          return {std::exp(a + b * h) + std::sin(5 * c + h)};
        },
        1e-11);
    const double exact = b * std::exp(a) + std::cos(5 * c);
    EXPECT_EQ(slope.kind, Slope::Kind::kSmooth) << f;
    EXPECT_LE(std::abs(slope.value - exact), slope.error) << f;
    EXPECT_LT(slope.error, 1e-9) << f;
  }
}

TEST(Slope, FindsTheStepByItself) {
  // It varies on a scale of 1e-6.
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::sin(1e6 * h + 1)}; }, 1e-4);
  EXPECT_EQ(slope.kind, Slope::Kind::kSmooth);
  EXPECT_LE(std::abs(slope.value - 1e6 * std::cos(1.0)), slope.error);
  EXPECT_LT(slope.error, 1);
}

TEST(Slope, IsBetweenTheTwoSidesOfAKink) {
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::exp(h) + 3 * std::abs(h)}; }, 1e-9);
  EXPECT_EQ(slope.kind, Slope::Kind::kKink);
  EXPECT_NEAR(slope.value, 1, 1e-9);
  EXPECT_NEAR(slope.error, 3, 1e-9);
}

// LapSum's weights at a breakpoint: the derivative exists, the curvature jumps.
TEST(Slope, IsSharpWhereOnlyTheCurvatureJumps) {
  for (uint32_t f = 0; f < 100; ++f) {
    const double a = Draw(f, 0), b = 2 + Draw(f, 1);
    const Slope slope = MeasureSlope(
        [=](double h) -> Sample {
          return {std::sin(a + h) + b * h * std::abs(h)};
        },
        1e-9);
    EXPECT_EQ(slope.kind, Slope::Kind::kKink) << f;
    EXPECT_LE(std::abs(slope.value - std::cos(a)), slope.error) << f;
    EXPECT_LT(slope.error, 1e-7) << f;
  }
}

TEST(Slope, StepsInFrontOfAKinkThatIsClose) {
  const Slope slope = MeasureSlope(
      [](double h) -> Sample { return {std::exp(h) + std::abs(h - 0.01)}; },
      1e-8);
  EXPECT_NE(slope.kind, Slope::Kind::kUndecided);
  EXPECT_LE(std::abs(slope.value - 0), slope.error);
  EXPECT_LT(slope.error, 1e-6);
}

// A bend so small and so close that differences converge across it: with its
// pieces told, the derivative is within the error; without, it may not be.
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
  // A domain that ends close by only costs the larger steps.
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
