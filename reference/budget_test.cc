// SPDX-License-Identifier: Apache-2.0
#include "reference/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "reference/router.h"
#include "reference/testing/finite_difference.h"
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

TEST(Budget, GradientAgreesWithDifferencesAndSumsToZero) {
  const Vector logits = Row({0.3, -0.8, 1.1, 0.05, -2}),
               direction = Row({0.7, 0.2, -1.4, 0.9, 0.5}),
               v = Row({-0.6, 1.3, 0.4, -0.9, 2});
  const Vector gradient = BudgetVjp(9, AllocateBudget(9, logits), v);
  const testing::DerivativeEstimate estimate = testing::DifferentiateAtZero(
      [&](double h) {
        return v.dot(AllocateBudget(9, logits + h * direction).allocation);
      },
      0.25);
  EXPECT_EQ(estimate.smoothness, testing::Smoothness::kSmooth);
  EXPECT_NEAR(gradient.dot(direction), estimate.value, estimate.error);
  // (K-L) sum pi (v - mean): the mean errs by 4 roundings of max|v|.
  EXPECT_NEAR(gradient.sum(), 0, 4 * 2 * 8 * kDoubleUnit);
}

// The whole chain, SPEC.md 2.2: budget logits -> k_l -> LapSum -> truncation
// and cap (frozen) -> loss, over three layers.
TEST(Budget, GradientThroughTheRoutersAgreesWithDifferences) {
  const Vector logits = Row({0.4, -0.3, 0.2}), direction = Row({1, 0.3, -0.8});
  const double budget = 5;
  const int64_t experts = 6;
  Matrix scores(3, experts), d_gates(3, experts);
  scores << 0.3, 1.2, -0.7, 0.1, 0.9, -1.4,  //
      -0.2, 0.6, 0.8, -1.9, 0.05, 1.6,       //
      1.1, -0.4, 0.35, 0.7, -0.9, 0.2;
  d_gates << 0.8, -0.3, 1.2, 0.4, -1.1, 0.6,  //
      -0.5, 0.9, 0.2, -0.7, 1.5, -0.1,        //
      0.3, 0.6, -0.8, 1.0, 0.1, -1.3;
  const auto settings_of = [&](double k) {
    return RouterSettings{.kind = RouterKind::kSoftLearned,
                          .mean_active = k,
                          .temperature = 0.8,
                          .cutoff = 1.1 * k / experts,
                          .max_active = MaxActive(2, k, experts)};
  };
  const Budget allocated = AllocateBudget(budget, logits);
  Vector d_allocation(3);
  std::vector<BoolMatrix> active;
  for (int l = 0; l < 3; ++l) {
    const RouterSettings settings = settings_of(allocated.allocation[l]);
    const RouterSaved saved = RouterForward(settings, scores.row(l));
    d_allocation[l] =
        RouterBackward(settings, scores.row(l), saved, d_gates.row(l))
            .d_mean_active;
    active.push_back(saved.active);
  }
  const Vector gradient = BudgetVjp(budget, allocated, d_allocation);
  const testing::DerivativeEstimate estimate = testing::DifferentiateAtZero(
      [&](double h) {
        const Budget moved = AllocateBudget(budget, logits + h * direction);
        double loss = 0;
        for (int l = 0; l < 3; ++l) {
          RouterSettings settings = settings_of(moved.allocation[l]);
          const Matrix weights =
              RouterForward(settings, scores.row(l)).soft_weights;
          loss += weights.cwiseProduct(active[l].cast<double>())
                      .cwiseProduct(d_gates.row(l))
                      .sum();
        }
        return loss;
      },
      0.0625);
  EXPECT_EQ(estimate.smoothness, testing::Smoothness::kSmooth);
  EXPECT_NEAR(gradient.dot(direction), estimate.value, estimate.error);
}

TEST(BudgetErrors, SayWhatIsWrong) {
  EXPECT_THROW(AllocateBudget(2.9, Vector::Zero(3)), ConfigError);
  EXPECT_THROW(AllocateBudget(std::nan(""), Vector::Zero(3)), ConfigError);
  EXPECT_THROW(
      AllocateBudget(std::numeric_limits<double>::infinity(), Vector::Zero(3)),
      ConfigError);
  EXPECT_THROW(AllocateBudget(3, Vector()), ConfigError);
  EXPECT_TRUE(Says(MessageOf<NumericsError>([&] {
                     AllocateBudget(5, Row({0, 1, std::nan("")}));
                   }),
                   "layer 2"));
}

}  // namespace
}  // namespace softmoe::reference
