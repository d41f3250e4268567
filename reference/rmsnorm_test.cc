// SPDX-License-Identifier: Apache-2.0
#include "reference/rmsnorm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;
using testing::RandomVector;

// x = (3, 4), mean of squares 12.5; with epsilon 12.5 the divisor is 5. Its
// reciprocal, two products and the 0.8 below round by half an ulp each.
TEST(RmsNorm, MatchesTheHandComputedValue) {
  Matrix hidden(1, 2);
  hidden << 3, 4;
  Vector weight(2);
  weight << 10, 1;
  const Matrix out = RmsNormForward(hidden, weight, 12.5);
  EXPECT_NEAR(out(0, 0), 6, 6 * 3 * kUlp / 2);
  EXPECT_NEAR(out(0, 1), 0.8, 0.8 * 4 * kUlp / 2);
}

TEST(RmsNorm, ZeroTokenStaysZero) {
  const Matrix out = RmsNormForward(Matrix::Zero(1, 4), Vector::Ones(4), 1e-5);
  EXPECT_EQ(out, Matrix::Zero(1, 4));
}

TEST(RmsNorm, RowsHaveUnitMeanSquareWithoutEpsilon) {
  const Matrix hidden = RandomMatrix(5, 16, 2, 1, 7);
  const Matrix out = RmsNormForward(hidden, Vector::Ones(16), 0);
  for (int t = 0; t < 5; ++t) {
    // 16 squares and sums of half an ulp each, twice.
    EXPECT_NEAR(out.row(t).squaredNorm() / 16, 1, 20 * kUlp);
  }
}

// Scaling by a power of two is exact, so without epsilon nothing changes.
TEST(RmsNorm, IgnoresTheScaleOfAToken) {
  const Matrix hidden = RandomMatrix(5, 8, 3, 1);
  const Vector weight = RandomVector(8, 3, 2);
  EXPECT_EQ(RmsNormForward(hidden, weight, 0),
            RmsNormForward(1024 * hidden, weight, 0));
}

TEST(RmsNorm, TokensAreIndependent) {
  const Matrix hidden = RandomMatrix(4, 8, 4, 1);
  const Vector weight = RandomVector(8, 4, 2);
  const Matrix all = RmsNormForward(hidden, weight, 1e-5);
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(all.row(t), RmsNormForward(hidden.row(t), weight, 1e-5).row(0));
  }
}

// Without epsilon the output does not change along x, so d_x is orthogonal to
// it. Terms of size |x| |d_x| cancel; 64 roundings of half an ulp.
TEST(RmsNorm, GradientIsOrthogonalToTheTokenWithoutEpsilon) {
  const Matrix hidden = RandomMatrix(6, 8, 6, 1);
  const RmsNormGradients g = RmsNormBackward(hidden, RandomVector(8, 6, 2), 0,
                                             RandomMatrix(6, 8, 6, 3));
  for (int t = 0; t < 6; ++t) {
    EXPECT_NEAR(g.d_hidden.row(t).dot(hidden.row(t)), 0,
                32 * kUlp * g.d_hidden.row(t).norm() * hidden.row(t).norm());
  }
}

TEST(RmsNorm, RefusesAWeightOfAnotherWidth) {
  EXPECT_THROW(RmsNormForward(Matrix::Ones(2, 4), Vector::Ones(5), 1e-5),
               InternalError);
  EXPECT_THROW(RmsNormBackward(Matrix::Ones(2, 4), Vector::Ones(4), 1e-5,
                               Matrix::Ones(2, 3)),
               InternalError);
  EXPECT_THROW(RmsNormBackward(Matrix::Ones(0, 4), Vector::Ones(3), 1e-5,
                               Matrix::Ones(0, 4)),
               InternalError);
}

// A given r = 1/rms is used as it is: with 2 r, xhat doubles, and so do y and
// d_weight, all exactly.
TEST(RmsNorm, TakesTheReciprocalThatItIsGiven) {
  const Matrix hidden = RandomMatrix(3, 8, 5, 1);
  const Matrix d_out = RandomMatrix(3, 8, 5, 3);
  const Vector weight = RandomVector(8, 5, 2);
  const Vector r = ReciprocalRms(hidden, 1e-5);
  EXPECT_EQ(formula::RmsNormForward<double>(hidden, weight, r),
            RmsNormForward(hidden, weight, 1e-5));
  EXPECT_EQ(formula::RmsNormForward<double>(hidden, weight, 2 * r),
            2 * RmsNormForward(hidden, weight, 1e-5));
  const RmsNormGradients g = RmsNormBackward(hidden, weight, 1e-5, d_out);
  const RmsNormGradients same =
      formula::RmsNormBackward<double>(hidden, weight, r, d_out);
  EXPECT_EQ(same.d_hidden, g.d_hidden);
  EXPECT_EQ(same.d_weight, g.d_weight);
  EXPECT_EQ(
      formula::RmsNormBackward<double>(hidden, weight, 2 * r, d_out).d_weight,
      2 * g.d_weight);
}

}  // namespace
}  // namespace softmoe::reference
