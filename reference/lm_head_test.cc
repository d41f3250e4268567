// SPDX-License-Identifier: Apache-2.0
#include "reference/lm_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;
using testing::RandomVector;

const std::vector<int32_t> kTargets = {2, 0, 6, 2};

TEST(TokenLosses, UniformLogitsGiveTheLogOfTheVocabulary) {
  const Vector losses = TokenLosses(Matrix::Constant(4, 7, -3.25), kTargets);
  for (int t = 0; t < 4; ++t) {
    // Two logarithms of an ulp; two sums of half an ulp.
    EXPECT_NEAR(losses(t), std::log(7.0), 3 * kUlp * std::log(7.0));
  }
}

TEST(TokenLosses, MatchesTheHandComputedValue) {
  Matrix logits(1, 3);
  logits << 0, std::log(2.0), std::log(5.0);  // probabilities 1/8, 2/8, 5/8
  // Five logarithms of an ulp, three exponentials that share one, and half a
  // dozen sums of half an ulp, of numbers below 2: relative, 8 at most.
  EXPECT_NEAR(TokenLosses(logits, std::vector<int32_t>{1})(0), std::log(4.0),
              8 * kUlp);
}

// Each loss is -ln of a probability: the probabilities of all targets sum to 1.
TEST(TokenLosses, ProbabilitiesOfAllTargetsSumToOne) {
  const Matrix logits = RandomMatrix(1, 7, 1, 1, 5);
  double sum = 0;
  for (int32_t target = 0; target < 7; ++target) {
    sum += std::exp(-TokenLosses(logits, std::vector<int32_t>{target})(0));
  }
  // Two sums of size 20 round to 20 half ulps each, relative in the
  // probability; a logarithm and an exponential of an ulp; 7 probabilities.
  EXPECT_NEAR(sum, 1, (20 + 2 + 7 / 2.) * kUlp);
}

// Logits of +-1000 overflow and underflow exp; the loss is still exact.
TEST(TokenLosses, LargeLogitsAreStable) {
  Matrix logits(2, 2);
  logits << 1000, 1000, -1000, -2000;
  const Vector losses = TokenLosses(logits, std::vector<int32_t>{0, 1});
  // 1000 + ln 2 rounds to 1000 half ulps.
  EXPECT_NEAR(losses(0), std::log(2.0), (1000 / 2.0 + 1) * kUlp);
  EXPECT_EQ(losses(1), 1000);
}

TEST(TokenLosses, GradientRowsSumToZeroAndScaleWithTheirOwnToken) {
  const Vector d_losses = RandomVector(4, 2, 2);
  const Matrix logits = RandomMatrix(4, 7, 2, 1);
  const Matrix d_logits = TokenLossesBackward(logits, kTargets, d_losses);
  const Matrix unscaled =
      TokenLossesBackward(logits, kTargets, Vector::Ones(4));
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(d_logits.row(t), d_losses(t) * unscaled.row(t));
    // In halves of an ulp: the softmax sums to 1 within 2; subtracting 1 in the
    // target's place rounds once; 7 terms of at most 2 in sum take a product
    // and 6 additions.
    EXPECT_NEAR(d_logits.row(t).sum(), 0,
                (2 + 1 + 2 * 7) / 2. * kUlp * std::abs(d_losses(t)));
  }
}

TEST(TokenLosses, RefusesTargetsOutsideTheVocabulary) {
  EXPECT_THROW(TokenLosses(Matrix::Zero(1, 3), std::vector<int32_t>{3}),
               DataError);
  EXPECT_THROW(TokenLosses(Matrix::Zero(1, 3), std::vector<int32_t>{-1}),
               DataError);
  EXPECT_THROW(TokenLossesBackward(Matrix::Zero(1, 3), std::vector<int32_t>{3},
                                   Vector::Ones(1)),
               DataError);
  EXPECT_THROW(TokenLosses(Matrix::Zero(2, 3), std::vector<int32_t>{0}),
               InternalError);
}

TEST(TokenLosses, NonFiniteLogitsAreRefusedByName) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    Matrix logits = Matrix::Zero(4, 7);
    logits(2, 0) = bad;
    EXPECT_TRUE(
        Says(MessageOf<NumericsError>([&] { TokenLosses(logits, kTargets); }),
             "token 2 for vocabulary entry 0"))
        << bad;
  }
}

}  // namespace
}  // namespace softmoe::reference
