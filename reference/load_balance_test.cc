// SPDX-License-Identifier: Apache-2.0
#include "reference/load_balance.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "reference/budget.h"
#include "reference/router.h"
#include "reference/softmax.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

// Token t prefers experts t, t+1, ... (cyclically): perfectly balanced.
Matrix Circulant(int64_t experts) {
  Matrix scores(experts, experts);
  for (int64_t t = 0; t < experts; ++t) {
    for (int64_t e = 0; e < experts; ++e) {
      scores(t, e) = -0.3 * static_cast<double>((e - t + experts) % experts);
    }
  }
  return scores;
}

// At balance f_i = P_i = 1/E, so coeff * E * sum 1/E^2 = coeff, for every k.
// Roundings: of a softmax value 4, of the mean and the dot product of 8 terms 8
// each, of a fraction 1 and of coeff * E 2. A soft weight has 8 more, of its
// offset, and is divided by k.
TEST(LoadBalance, IsItsCoefficientAtBalance) {
  const int64_t experts = 8;
  const Matrix scores = Circulant(experts);
  for (int64_t top : {1, 2, 3, 8}) {
    EXPECT_NEAR(MegatronLoadBalance(0.01, top, scores).loss, 0.01,
                0.01 * (4 + 8 + 8 + 1 + 2) * kDoubleUnit);
  }
  for (double k : {1.0, 1.5, 3.7}) {
    const RouterSettings settings{.kind = RouterKind::kSoftFixed,
                                  .mean_active = k,
                                  .temperature = 0.5,
                                  .cutoff = 1.1 * k / experts,
                                  .max_active = 4};
    const RouterSaved routed = RouterForward(settings, scores);
    ASSERT_GT(routed.active.count(), 0);
    EXPECT_NEAR(
        SoftLoadBalance(0.01, k, routed.soft_weights, routed.active).loss, 0.01,
        0.01 * (4 + 8 + 1 + 8 + 8 + 1 + 2) * kDoubleUnit);
  }
}

// All tokens on one expert with certainty: the largest value, coeff * E/top
// for top = 1.
TEST(LoadBalance, IsLargestWhereOneExpertTakesAll) {
  Matrix scores = Matrix::Zero(10, 4);
  scores.col(2).setConstant(1000);
  EXPECT_EQ(MegatronLoadBalance(1, 1, scores).loss, 4);
}

TEST(LoadBalance, MegatronReadsAsInTheSource) {
  // coeff * E / (top N^2) sum_i (sum_t s_ti) n_i, written out.
  const int64_t tokens = 7, experts = 5, top = 2;
  const Matrix scores = RandomMatrix(tokens, experts, 7, 1);
  const RouterSaved routed =
      RouterForward({.kind = RouterKind::kSparse, .max_active = top}, scores);
  double sum = 0;
  for (int64_t e = 0; e < experts; ++e) {
    double probability = 0, count = 0;
    for (int64_t t = 0; t < tokens; ++t) {
      probability += Softmax(scores.row(t))[e];
      count += routed.active(t, e);
    }
    sum += probability * count;
  }
  const double expected = 0.01 * experts / (top * tokens * tokens) * sum;
  // Each side has a softmax value of 4 roundings, sums of 7 and 5 terms and 4
  // products or quotients.
  EXPECT_NEAR(MegatronLoadBalance(0.01, top, scores).loss, expected,
              expected * 2 * (4 + 7 + 5 + 4) * kDoubleUnit);
}

TEST(LoadBalance, SoftCountsTheActiveSetAndAveragesTheWeights) {
  Matrix weights(2, 3);
  weights << 0.5, 0.75, 0.25,  //
      1.0, 0.25, 0.25;
  BoolMatrix active(2, 3);
  active << false, true, false,  //
      true, true, false;
  const LoadBalance balance = SoftLoadBalance(2, 1.5, weights, active);
  // n = (1, 2, 0) of 3; mean weights (3/4, 1/2, 1/4) over k = 3/2.
  const double expected = 2 * 3 * (1. / 3 * 0.5 + 2. / 3 * (1. / 3));
  // Roundings of the loss: a fraction, a quotient by k, a product, two sums and
  // the factor 6; of `expected`: two quotients, a product, a sum and the
  // factor.
  EXPECT_NEAR(balance.loss, expected, expected * (6 + 5) * kDoubleUnit);
  EXPECT_NEAR(balance.fractions.sum(), 1, 4 * kDoubleUnit);
  EXPECT_NEAR(balance.probabilities.sum(), 1, 4 * kDoubleUnit);
}

TEST(LoadBalance, WithNothingActiveTheFractionsAreUniform) {
  Matrix weights(2, 4);
  weights << 0.5, 0.25, 0.125, 0.125,  //
      0.25, 0.25, 0.25, 0.25;
  const LoadBalance balance =
      SoftLoadBalance(0.01, 1, weights, BoolMatrix::Constant(2, 4, false));
  EXPECT_EQ(balance.fractions, Vector::Constant(4, 0.25));
  EXPECT_EQ(balance.loss, 0.01);  // times 4 times 1/4, the sums exact
}

TEST(ZLoss, IsTheMeanSquareOfLogSumExp) {
  // The mean of three equal squares: a sum and a quotient round.
  const double expected = 0.5 * std::log(4.0) * std::log(4.0);
  EXPECT_NEAR(ZLoss(0.5, Matrix::Zero(3, 4)), expected,
              2 * kDoubleUnit * expected);
}

TEST(BalanceTop, RoundsTheAllocationUp) {
  EXPECT_EQ(BalanceTop(1, 8), 1);
  EXPECT_EQ(BalanceTop(1.5, 8), 2);
  EXPECT_EQ(BalanceTop(2, 8), 2);
  EXPECT_EQ(BalanceTop(7.2, 8), 8);
  EXPECT_EQ(BalanceTop(8, 8), 8);
  EXPECT_EQ(BalanceTop(12, 8), 8);
}

// Rounding of a whole allocation must not add an expert.
TEST(BalanceTop, EqualShareOfAWholeBudgetIsThatWhole) {
  for (const int layers : {1, 10, 49, 105, 117, 123}) {
    for (const int k : {1, 2, 3, 6, 7, 12}) {
      const Vector allocation =
          AllocateBudget(k * layers, Vector::Zero(layers)).allocation;
      EXPECT_EQ(BalanceTop(allocation[0], 32), k) << layers;
    }
  }
  // From below: 12 - 2^-49.
  EXPECT_EQ(BalanceTop(std::nextafter(12.0, 0), 32), 12);
  EXPECT_EQ(BalanceTop(12 + 2e-6, 32), 13);
}

TEST(LoadBalanceErrors, RefuseAnEmptyGroup) {
  EXPECT_THROW(MegatronLoadBalance(0.01, 1, Matrix(0, 4)), ConfigError);
  EXPECT_THROW(ZLoss(0.01, Matrix(0, 4)), ConfigError);
  EXPECT_THROW(ZLoss(0.01, Matrix(4, 0)), ConfigError);
  EXPECT_THROW(ZLossGradient(0.01, Matrix(0, 4)), ConfigError);
  EXPECT_THROW(SoftLoadBalance(0.01, 1, Matrix(0, 4), BoolMatrix(0, 4)),
               ConfigError);
  EXPECT_THROW(MegatronLoadBalance(0.01, 5, Matrix::Zero(2, 4)), ConfigError);
}

TEST(LoadBalanceErrors, RefuseTheBalanceOfOtherExperts) {
  const LoadBalance balance = MegatronLoadBalance(0.01, 1, Matrix::Zero(2, 4));
  EXPECT_THROW(MegatronLoadBalanceGradient(0.01, balance, Matrix::Zero(2, 3)),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference
