// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "reference/rope.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

// The weights of one head [sequence_length, sequence_length].
Matrix Weights(const Matrix& q, const Matrix& k) {
  return formula::CausalSoftmax<double>(formula::AttentionLogits<double>(q, k));
}

// head_dim 4, so the scale is 1/2; q_1.k_0 = 2 ln 3, q_1.k_1 = 0: weights 3:1.
TEST(Attention, MatchesTheHandComputedWeights) {
  Matrix q = Matrix::Zero(2, 4), k = Matrix::Zero(2, 4), v(2, 4);
  q(1, 0) = 2 * std::log(3.0);
  k(0, 0) = 1;
  v << 1, 2, 3, 4, 5, 6, 7, 8;
  EXPECT_EQ(formula::AttentionLogits<double>(q, k)(0, 1), 0);
  const Matrix weights = Weights(q, k);
  EXPECT_EQ(weights(0, 0), 1);
  EXPECT_EQ(weights(0, 1), 0);
  // One ulp each for a logarithm and an exponential, then a sum and a quotient.
  EXPECT_NEAR(weights(1, 0), 0.75, 4 * kUlp);
  EXPECT_NEAR(weights(1, 1), 0.25, 4 * kUlp);
  const Matrix out = formula::CausalAttention<double>(q, k, v);
  EXPECT_EQ(out.row(0), v.row(0));
  EXPECT_NEAR(out(1, 0), 2, (4 + 1) * kUlp * 2);
}

TEST(Attention, RowsAreConvexCombinationsOfThePast) {
  const Matrix weights =
      Weights(RandomMatrix(7, 4, 1, 1, 3), RandomMatrix(7, 4, 1, 2, 3));
  for (int t = 0; t < 7; ++t) {
    // 7 terms are added twice, and divided.
    EXPECT_NEAR(weights.row(t).sum(), 1, (6 + 6 + 1) / 2. * kUlp);
    for (int s = 0; s < 7; ++s) {
      if (s > t) {
        EXPECT_EQ(weights(t, s), 0);
      } else {
        EXPECT_GE(weights(t, s), 0);
      }
    }
  }
}

TEST(Attention, LaterTokensThatAreNaNDoNotReachEarlierOutputs) {
  Matrix qkv[3];
  for (uint32_t i = 0; i < 3; ++i) qkv[i] = RandomMatrix(6, 4, 8, i);
  const Matrix out = formula::CausalAttention<double>(qkv[0], qkv[1], qkv[2]);
  for (Matrix& part : qkv) part(4, 1) = std::nan("");
  const Matrix after = formula::CausalAttention<double>(qkv[0], qkv[1], qkv[2]);
  EXPECT_EQ(after.topRows(4), out.topRows(4));
  EXPECT_TRUE(std::isnan(after(4, 1)));
}

// Logits of +-1e5 would overflow exp without the shift by the row's maximum.
TEST(Attention, LargeLogitsAreStable) {
  const Matrix q = 1000 * RandomMatrix(5, 4, 3, 1);
  const Matrix k = 1000 * RandomMatrix(5, 4, 3, 2);
  const Matrix v = RandomMatrix(5, 4, 3, 3);
  const Matrix out = formula::CausalAttention<double>(q, k, v);
  EXPECT_TRUE(out.allFinite());
}

// Rotating with RoPE shifts every logit by relative position only.
TEST(Attention, WithRopeDependsOnRelativePositionOnly) {
  const Matrix q = RandomMatrix(6, 8, 4, 1), k = RandomMatrix(6, 8, 4, 2);
  const Matrix here =
      Weights(RotateHeads(q, 8, 10000, 0), RotateHeads(k, 8, 10000, 0));
  const Matrix there =
      Weights(RotateHeads(q, 8, 10000, 100), RotateHeads(k, 8, 10000, 100));
  // Logits have size |q||k|/sqrt(8); angles are rounded to 106 half ulps, and
  // a weight's derivative with respect to a logit is at most 1/4 per logit.
  const double logit_error = (16 + 2 * 106) * kUlp *
                             q.rowwise().norm().maxCoeff() *
                             k.rowwise().norm().maxCoeff() / std::sqrt(8.0);
  EXPECT_LE((here - there).cwiseAbs().maxCoeff(), 2 * logit_error);
}

TEST(Attention, HeadsAndSequencesDoNotMix) {
  const int kSequences = 2, kLength = 4, kHeads = 3, kHeadDim = 2;
  const int d_model = kHeads * kHeadDim;
  const Matrix qkv = RandomMatrix(kSequences * kLength, 3 * d_model, 5, 1);
  const Matrix out = MultiHeadAttention(qkv, kSequences, kHeads);
  for (int s = 0; s < kSequences; ++s) {
    for (int h = 0; h < kHeads; ++h) {
      auto part = [&](int which) {
        return qkv.block(s * kLength, which * d_model + h * kHeadDim, kLength,
                         kHeadDim);
      };
      EXPECT_EQ(out.block(s * kLength, h * kHeadDim, kLength, kHeadDim),
                formula::CausalAttention<double>(part(0), part(1), part(2)));
    }
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(MultiHeadAttention(Matrix::Ones(5, 12), 2, 2), InternalError);
  EXPECT_THROW(MultiHeadAttention(Matrix::Ones(4, 14), 2, 2), InternalError);
  EXPECT_THROW(
      MultiHeadAttentionBackward(Matrix::Ones(5, 12), 2, 2, Matrix::Ones(5, 4)),
      InternalError);
  EXPECT_THROW(MultiHeadAttentionBackward(Matrix::Ones(4, 12), 2, 2,
                                          Matrix::Ones(4, 12)),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference
