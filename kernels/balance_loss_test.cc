// SPDX-License-Identifier: Apache-2.0
//
// Examples worked out by hand; property_tests/model_property_test.cc compares
// with the reference.
#include "kernels/balance_loss.h"

#include <gtest/gtest.h>

#include <vector>

namespace softmoe::kernels {
namespace {

struct Losses {
  double load_balance = -1, z = -1;
  std::vector<float> d_probability;
};

Losses Compute(int64_t num_tokens, double aux_loss_coeff, double z_loss_coeff,
               double group_scale, const std::vector<int64_t>& counts,
               const std::vector<double>& sums, double z_sum) {
  ThreadPool pool(2);
  Losses losses;
  losses.d_probability.resize(counts.size());
  BalanceLoss({.num_tokens = num_tokens,
               .num_experts = static_cast<int64_t>(counts.size()),
               .aux_loss_coeff = aux_loss_coeff,
               .z_loss_coeff = z_loss_coeff,
               .group_scale = group_scale,
               .balance_counts = counts.data(),
               .probability_sums = sums.data(),
               .z_sum = &z_sum,
               .load_balance_loss = &losses.load_balance,
               .z_loss = &losses.z,
               .d_probability = losses.d_probability.data()},
              pool);
  return losses;
}

// Powers of two throughout, so that nothing rounds.
TEST(BalanceLoss, IsTheCoefficientAtPerfectBalance) {
  const Losses losses =
      Compute(8, 0.25, 0.5, 1, {4, 4, 4, 4}, {2, 2, 2, 2}, 16);
  EXPECT_EQ(losses.load_balance, 0.25);
  EXPECT_EQ(losses.z, 1.0);  // 0.5 * 16 / 8
}

TEST(BalanceLoss, WeighsEachExpertByItsShareOfTheLoad) {
  // f = 3/4, 1/4, 0, 0; P = 1/2, 1/2, 0, 0: 0.25 * 4 * (3/8 + 1/8).
  const Losses losses = Compute(8, 0.25, 0, 0.5, {6, 2, 0, 0}, {4, 4, 0, 0}, 9);
  EXPECT_EQ(losses.load_balance, 0.5);
  EXPECT_EQ(losses.z, 0);
  // group_scale * 0.25 * 4 * f_i / 8
  EXPECT_EQ(losses.d_probability,
            (std::vector<float>{0.5f * 0.75f / 8, 0.5f * 0.25f / 8, 0, 0}));
}

TEST(BalanceLoss, WithoutAnyLoadIsEven) {
  const Losses losses = Compute(2, 1, 1, 1, {0, 0}, {0.5, 1.5}, 0);
  EXPECT_EQ(losses.load_balance, 1 * 2 * (0.5 * 0.25 + 0.5 * 0.75));
  EXPECT_EQ(losses.d_probability, (std::vector<float>{0.5f, 0.5f}));
}

}  // namespace
}  // namespace softmoe::kernels
