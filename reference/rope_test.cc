// SPDX-License-Identifier: Apache-2.0
#include "reference/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

// head_dim 4, base 100: pair 0 turns by the position, pair 1 by position/10.
TEST(Rope, MatchesTheHandComputedRotation) {
  EXPECT_EQ(RopeAngle(7, 0, 4, 100), 7);
  // pow is within an ulp (2 units); the product and the 0.7 here add 1 each.
  constexpr double kAngleError = 0.7 * 4 * kDoubleUnit;
  EXPECT_NEAR(RopeAngle(7, 1, 4, 100), 0.7, kAngleError);
  Matrix row(1, 4);
  row << 1, 2, 3, 4;  // pairs (1, 3) and (2, 4): rotate-half, not interleaved
  const Matrix out = RotateHeads(row, 4, 100, 7);
  EXPECT_EQ(out(0, 0), std::cos(7.0) - 3 * std::sin(7.0));
  // On either side: sin and cos 2 units, product 1, sum 1, the angle's error.
  constexpr double kTurned = (2 + 4) * (8 * kDoubleUnit + kAngleError);
  EXPECT_NEAR(out(0, 1), 2 * std::cos(0.7) - 4 * std::sin(0.7), kTurned);
  EXPECT_EQ(out(0, 2), std::sin(7.0) + 3 * std::cos(7.0));
  EXPECT_NEAR(out(0, 3), 2 * std::sin(0.7) + 4 * std::cos(0.7), kTurned);
}

TEST(Rope, PositionZeroIsTheIdentity) {
  const Matrix row = RandomMatrix(1, 12, 1, 1);
  EXPECT_EQ(RotateHeads(row, 6, 10000), row);
}

// <R_m q, R_n k> depends on m - n only: both sides are sums of 8 products of
// size |q||k|, with angles rounded to position * half an ulp.
TEST(Rope, InnerProductsDependOnRelativePositionOnly) {
  const Matrix q = RandomMatrix(1, 8, 2, 1);
  const Matrix k = RandomMatrix(1, 8, 2, 2);
  auto product = [&](int64_t m, int64_t n) {
    return RotateHeads(q, 8, 10000, m)
        .row(0)
        .dot(RotateHeads(k, 8, 10000, n).row(0));
  };
  const double tolerance = (16 + 2 * 117) * kUlp * q.norm() * k.norm();
  for (const auto& [m, n] : {std::pair<int, int>{5, 3}, {9, 0}, {4, 4}}) {
    EXPECT_NEAR(product(m, n), product(m + 108, n + 108), tolerance);
  }
  EXPECT_GT(std::abs(product(5, 3) - product(5, 4)), 1e-3);  // and on that
}

TEST(Rope, PreservesTheLengthOfEveryPair) {
  const Matrix rows = RandomMatrix(9, 6, 3, 1);
  const Matrix out = RotateHeads(rows, 6, 50);
  for (int t = 0; t < 9; ++t) {
    for (int i = 0; i < 3; ++i) {
      const double before = std::hypot(rows(t, i), rows(t, i + 3));
      EXPECT_NEAR(std::hypot(out(t, i), out(t, i + 3)), before,
                  8 * kUlp * before);
    }
  }
}

TEST(Rope, RestartsInEverySequenceAndLeavesValuesAlone) {
  const int kSequences = 2, kLength = 4, kHeads = 3, kDModel = 12;
  const Matrix qkv = RandomMatrix(kSequences * kLength, 3 * kDModel, 4, 1);
  const Matrix out = RopeForward(qkv, kSequences, kHeads, 10000);
  EXPECT_EQ(out.rightCols(kDModel), qkv.rightCols(kDModel));
  for (int s = 0; s < kSequences; ++s) {
    for (int part = 0; part < 2; ++part) {
      EXPECT_EQ(
          out.block(s * kLength, part * kDModel, kLength, kDModel),
          RotateHeads(qkv.block(s * kLength, part * kDModel, kLength, kDModel),
                      kDModel / kHeads, 10000));
    }
  }
}

TEST(Rope, RefusesOddHeadsAndShapesThatDoNotDivide) {
  EXPECT_THROW(RotateHeads(Matrix::Ones(2, 6), 3, 10000), InternalError);
  EXPECT_THROW(RotateHeads(Matrix::Ones(2, 6), 4, 10000), InternalError);
  EXPECT_THROW(RopeForward(Matrix::Ones(5, 12), 2, 2, 10000), InternalError);
  EXPECT_THROW(RopeForward(Matrix::Ones(4, 14), 2, 2, 10000), InternalError);
  EXPECT_THROW(RopeForward(Matrix::Ones(4, 6), 2, 2, 10000), InternalError);
  EXPECT_THROW(RopeBackward(Matrix::Ones(5, 12), 2, 2, 10000), InternalError);
}

}  // namespace
}  // namespace softmoe::reference
