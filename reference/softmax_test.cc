// SPDX-License-Identifier: Apache-2.0
#include "reference/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/testing/bounded.h"
#include "reference/testing/finite_difference.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::Row;

TEST(Softmax, HasTheValuesOfTheDefinition) {
  const Vector s = Softmax(Row({0, std::log(2.0), std::log(5.0)}));
  // ln 2 and ln 5 are rounded, 2 units each; then exp, sum and division.
  EXPECT_NEAR(s[0], 0.125, 6 * kDoubleUnit);
  EXPECT_NEAR(s[1], 0.25, 6 * kDoubleUnit);
  EXPECT_NEAR(s[2], 0.625, 6 * kDoubleUnit);
}

TEST(Softmax, DoesNotOverflow) {
  EXPECT_EQ(Softmax(Row({1e308, 1e308})), Row({0.5, 0.5}));
  EXPECT_EQ(Softmax(Row({-1e308, 1e308})), Row({0, 1}));
  EXPECT_EQ(LogSumExp(Row({-1e308, 1e308})), 1e308);
  EXPECT_NEAR(LogSumExp(Row({1000, 1000})), 1000 + std::log(2.0),
              2 * 1000 * kDoubleUnit);
}

TEST(Softmax, GradientIsTheDerivativeAlongALine) {
  const Vector r = Row({0.3, -1.2, 2, 0.7}), w = Row({0.9, -0.3, 0.4, -1.1}),
               v = Row({1.3, 0.2, -0.8, 0.6});
  const testing::DerivativeEstimate estimate = testing::DifferentiateAtZero(
      [&](double h) { return v.dot(Softmax(r + h * w)); }, 0.25);
  EXPECT_EQ(estimate.smoothness, testing::Smoothness::kSmooth);
  EXPECT_NEAR(SoftmaxVjp(Softmax(r), v).dot(w), estimate.value, estimate.error);
}

TEST(LogSumExp, GradientIsSoftmax) {
  const Vector r = Row({0.3, -1.2, 2, 0.7}), w = Row({0.9, -0.3, 0.4, -1.1});
  const testing::DerivativeEstimate estimate = testing::DifferentiateAtZero(
      [&](double h) { return LogSumExp(r + h * w); }, 0.25);
  EXPECT_EQ(estimate.smoothness, testing::Smoothness::kSmooth);
  EXPECT_NEAR(Softmax(r).dot(w), estimate.value, estimate.error);
}

}  // namespace
}  // namespace softmoe::reference
