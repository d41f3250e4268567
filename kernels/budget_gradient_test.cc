// SPDX-License-Identifier: Apache-2.0
//
// The numbers here do not round; optimized/allocation_test.cc tests that this
// is the gradient of the allocation.
#include "kernels/budget_gradient.h"

#include <gtest/gtest.h>

#include <vector>

namespace softmoe::kernels {
namespace {

std::vector<float> Gradient(double spare_budget,
                            const std::vector<double>& shares,
                            const std::vector<double>& d_mean_active) {
  ThreadPool pool(1);
  std::vector<float> d_budget_logits(shares.size() + 1, -7);
  BudgetGradient({.num_layers = static_cast<int64_t>(shares.size()),
                  .spare_budget = spare_budget,
                  .shares = shares.data(),
                  .d_mean_active = d_mean_active.data(),
                  .d_budget_logits = d_budget_logits.data()},
                 pool);
  return d_budget_logits;
}

TEST(BudgetGradient, IsTheDeviationFromTheMeanByShares) {
  EXPECT_EQ(Gradient(3, {0.5, 0.25, 0.25}, {1, 2, -4}),
            (std::vector<float>{1.5, 1.5, -3, -7}));
}

TEST(BudgetGradient, WithoutAnythingToSpendIsZero) {
  EXPECT_EQ(Gradient(0, {0.5, 0.5}, {1, 2}), (std::vector<float>{0, 0, -7}));
  EXPECT_EQ(Gradient(2, {1}, {5}), (std::vector<float>{0, -7}));
}

}  // namespace
}  // namespace softmoe::kernels
