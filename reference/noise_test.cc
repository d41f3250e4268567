// SPDX-License-Identifier: Apache-2.0
#include "reference/noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::reference {
namespace {

RouterNoise Jitter(double amplitude) {
  return {.kind = NoiseKind::kInputJitter,
          .amplitude = amplitude,
          .seed = 5,
          .step = 3,
          .layer = 2};
}

RouterNoise Gauss(double amplitude) {
  RouterNoise noise = Jitter(amplitude);
  noise.kind = NoiseKind::kLogitGauss;
  return noise;
}

Matrix Ramp(int64_t rows, int64_t cols) {
  Matrix result(rows, cols);
  for (int64_t i = 0; i < rows * cols; ++i) {
    result(i / cols, i % cols) = 0.25 * static_cast<double>(i) - 3;
  }
  return result;
}

// The address of every draw, written out: it is part of a result's definition.
TEST(Noise, DrawsComeFromTheirPhiloxAddress) {
  const RandomKey key{5, RandomStream::kRouterNoise, 3, 2};
  const int64_t width = 6;  // two groups of four columns, the second half used
  const Matrix factors = JitterFactors(Jitter(0.25), 10, 3, width);
  const Matrix draws = GaussDraws(Gauss(1), 10, 3, width);
  for (int64_t t = 0; t < 3; ++t) {
    const auto first = PhiloxWords(key, (10 + t) * 2);
    const auto second = PhiloxWords(key, (10 + t) * 2 + 1);
    for (int64_t j = 0; j < width; ++j) {
      const uint32_t word = j < 4 ? first[j] : second[j - 4];
      EXPECT_EQ(factors(t, j), 0.75 + 0.5 * UniformFromWord(word));
    }
    EXPECT_EQ(draws(t, 0), NormalsFromWords(first[0], first[1])[0]);
    EXPECT_EQ(draws(t, 1), NormalsFromWords(first[0], first[1])[1]);
    EXPECT_EQ(draws(t, 2), NormalsFromWords(first[2], first[3])[0]);
    EXPECT_EQ(draws(t, 3), NormalsFromWords(first[2], first[3])[1]);
    EXPECT_EQ(draws(t, 4), NormalsFromWords(second[0], second[1])[0]);
    EXPECT_EQ(draws(t, 5), NormalsFromWords(second[0], second[1])[1]);
  }
}

TEST(Noise, DoesNotDependOnHowTokensAreBatched) {
  const Matrix hidden = Ramp(6, 5);
  for (const RouterNoise& noise : {Jitter(0.05), Gauss(0.05)}) {
    const Matrix input = NoisyRouterInput(noise, 0, hidden);
    const Matrix scores = NoisyScores(noise, 0, hidden);
    EXPECT_EQ(NoisyRouterInput(noise, 4, hidden.bottomRows(2)),
              input.bottomRows(2));
    EXPECT_EQ(NoisyScores(noise, 4, hidden.bottomRows(2)),
              scores.bottomRows(2));
  }
}

TEST(Noise, StepLayerAndSeedDrawAnew) {
  const Matrix base = JitterFactors(Jitter(0.05), 0, 4, 4);
  RouterNoise other = Jitter(0.05);
  other.step = 4;
  EXPECT_NE(JitterFactors(other, 0, 4, 4), base);
  other = Jitter(0.05);
  other.layer = 1;
  EXPECT_NE(JitterFactors(other, 0, 4, 4), base);
  other = Jitter(0.05);
  other.seed = 6;
  EXPECT_NE(JitterFactors(other, 0, 4, 4), base);
}

TEST(Noise, EachKindTouchesOnlyItsOwnPlace) {
  const Matrix values = Ramp(3, 4);
  EXPECT_EQ(NoisyScores(Jitter(0.5), 0, values), values);
  EXPECT_EQ(NoisyRouterInput(Gauss(0.5), 0, values), values);
  EXPECT_NE(NoisyScores(Gauss(0.5), 0, values), values);
  EXPECT_NE(NoisyRouterInput(Jitter(0.5), 0, values), values);
  const RouterNoise none;
  EXPECT_EQ(NoisyScores(none, 0, values), values);
  EXPECT_EQ(NoisyRouterInput(none, 0, values), values);
}

// Mean and variance within 6 standard errors of n = 40,000 fixed draws:
// uniform on [1-eps, 1+eps] has variance eps^2/3 and fourth central moment
// eps^4/5, so sd(variance) = eps^2 sqrt((1/5 - 1/9)/n).
TEST(Noise, JitterIsUniformAndGaussIsNormal) {
  const double n = 40000, epsilon = 0.05;
  const Matrix factors = JitterFactors(Jitter(epsilon), 0, 1000, 40);
  EXPECT_GE(factors.minCoeff(), 1 - epsilon);
  EXPECT_LE(factors.maxCoeff(), 1 + epsilon);
  EXPECT_NEAR(factors.mean(), 1, 6 * epsilon / std::sqrt(3 * n));
  EXPECT_NEAR((factors.array() - 1).square().mean(), epsilon * epsilon / 3,
              6 * epsilon * epsilon * std::sqrt((0.2 - 1. / 9) / n));
  const Matrix draws = GaussDraws(Gauss(1), 0, 1000, 40);
  EXPECT_NEAR(draws.mean(), 0, 6 / std::sqrt(n));
  EXPECT_NEAR(draws.array().square().mean(), 1, 6 * std::sqrt(2 / n));
}

TEST(Noise, AmplitudeScales) {
  const Matrix zero = Matrix::Zero(3, 4);
  EXPECT_EQ(NoisyScores(Gauss(0.125), 0, zero),
            0.125 * GaussDraws(Gauss(1), 0, 3, 4));
  EXPECT_EQ(JitterFactors(Jitter(0), 0, 3, 4), Matrix::Ones(3, 4));
}

TEST(NoiseErrors, RefuseAmplitudesOutsideTheirRange) {
  const Matrix values = Ramp(2, 2);
  for (double amplitude : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THROW(NoisyRouterInput(Jitter(amplitude), 0, values), ConfigError);
  }
  for (double amplitude : {-0.1, std::nan("")}) {
    EXPECT_THROW(NoisyScores(Gauss(amplitude), 0, values), ConfigError);
  }
}

}  // namespace
}  // namespace softmoe::reference
