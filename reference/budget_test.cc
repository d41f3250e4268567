// SPDX-License-Identifier: Apache-2.0
#include "reference/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::Row;

// Paper: K = 15 over L = 10 layers; zero logits give every layer 1.5.
TEST(Budget, ZeroLogitsShareEqually) {
  const Budget budget = AllocateBudget(15, Vector::Zero(10));
  for (double k : budget.allocation) EXPECT_NEAR(k, 1.5, 2 * kDoubleUnit);
}

// The shares err by the 4 roundings of exponential, sum and division; their
// sum, times K - L, by as many.
TEST(Budget, SumsToTheBudgetAndLeavesEveryLayerOne) {
  const Vector logits = Row({5, -800, 0.5, 2, -3, 1e4, 9999, 0, 1, 2});
  const Budget budget = AllocateBudget(20, logits);
  EXPECT_NEAR(budget.allocation.sum(), 20, 20 * 8 * kDoubleUnit);
  for (double k : budget.allocation) EXPECT_GE(k, 1);
  EXPECT_EQ(budget.allocation[1], 1);
  EXPECT_TRUE(budget.allocation.allFinite());
}

TEST(Budget, WithoutSlackEveryLayerGetsOne) {
  const Budget budget = AllocateBudget(3, Row({1, -5, 7}));
  EXPECT_EQ(budget.allocation, Row({1, 1, 1}));
  EXPECT_EQ(BudgetVjp(3, budget, Row({0.3, -2, 5})), Vector::Zero(3));
}

TEST(Budget, ShiftingTheLogitsChangesNothing) {
  const Vector logits = Row({0.5, -1.25, 2, 0});
  // Differences of these logits are exact, so the bits must agree.
  EXPECT_EQ(AllocateBudget(6, logits).allocation,
            AllocateBudget(6, (logits.array() + 1024).matrix()).allocation);
}

TEST(BudgetErrors, SayWhatIsWrong) {
  EXPECT_THROW(AllocateBudget(2.9, Vector::Zero(3)), ConfigError);
  EXPECT_THROW(AllocateBudget(std::nan(""), Vector::Zero(3)), ConfigError);
  EXPECT_THROW(
      AllocateBudget(std::numeric_limits<double>::infinity(), Vector::Zero(3)),
      ConfigError);
  EXPECT_THROW(AllocateBudget(3, Vector()), ConfigError);
  EXPECT_TRUE(Says(MessageOf<NumericsError>([&] {
                     AllocateBudget(5, Row({std::nan(""), 1, 0}));
                   }),
                   "layer 0"));
}

}  // namespace
}  // namespace softmoe::reference
