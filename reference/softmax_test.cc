// SPDX-License-Identifier: Apache-2.0
#include "reference/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/bounded.h"
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

TEST(Softmax, RefusesAGradientOfAnotherSize) {
  EXPECT_THROW(SoftmaxVjp(Row({0.5, 0.5}), Row({1, 2, 3})), InternalError);
}

}  // namespace
}  // namespace softmoe::reference
