// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/shuffle.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

std::vector<int64_t> Order(uint64_t seed, int64_t epoch, int64_t count) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    order.push_back(ShuffledIndex(seed, epoch, i, count));
  }
  return order;
}

RC_GTEST_PROP(ShuffledIndex, IsAPermutation, (uint64_t seed, uint32_t epoch)) {
  const auto count = *rc::gen::inRange<int64_t>(1, 600);
  std::vector<bool> seen(static_cast<size_t>(count));
  for (const int64_t index : Order(seed, epoch, count)) {
    RC_ASSERT(index >= 0 && index < count);
    RC_ASSERT(!seen[static_cast<size_t>(index)]);
    seen[static_cast<size_t>(index)] = true;
  }
}

TEST(ShuffledIndex, DiffersBetweenEpochsAndSeeds) {
  const auto first = Order(1, 0, 1000);
  EXPECT_NE(first, Order(1, 1, 1000));
  EXPECT_NE(first, Order(2, 0, 1000));
  EXPECT_EQ(first, Order(1, 0, 1000));
}

// These values are part of every training result's definition: they must not
// change silently.
TEST(ShuffledIndex, KeepsItsValues) {
  EXPECT_EQ(Order(1234, 0, 10),
            (std::vector<int64_t>{0, 1, 8, 4, 6, 2, 7, 3, 9, 5}));
  EXPECT_EQ(ShuffledIndex(1234, 3, 98765432, 100000000), 94674465);
}

// All 24 orders of 4 items over many epochs: chi-square with 23 degrees of
// freedom. P(chi2 > 70) < 2e-6 for an ideal shuffle; the draw is fixed.
TEST(ShuffledIndex, ReachesAllOrdersOfFourAboutEquallyOften) {
  constexpr int kEpochs = 24000;
  std::map<std::vector<int64_t>, int> times;
  for (int epoch = 0; epoch < kEpochs; ++epoch) ++times[Order(7, epoch, 4)];
  ASSERT_EQ(times.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, seen] : times) {
    chi_square += std::pow(seen - kEpochs / 24.0, 2) / (kEpochs / 24.0);
  }
  EXPECT_LT(chi_square, 70.0);
}

// Sum of |item - position| of a random permutation of n: mean (n^2 - 1)/3 and
// standard deviation about sqrt(2 n^3 / 45) (Diaconis and Graham 1977).
TEST(ShuffledIndex, ScattersNeighbours) {
  constexpr int64_t kCount = 5000;
  const auto order = Order(11, 2, kCount);
  double distance = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    distance +=
        std::abs(static_cast<double>(order[static_cast<size_t>(i)] - i));
  }
  const double n = kCount;
  EXPECT_NEAR(distance, (n * n - 1) / 3, 5 * std::sqrt(2 * n * n * n / 45));
}

TEST(ShuffledIndex, RefusesPositionsOutside) {
  EXPECT_THROW(ShuffledIndex(1, 0, 5, 5), InternalError);
  EXPECT_THROW(ShuffledIndex(1, 0, -1, 5), InternalError);
  EXPECT_THROW(ShuffledIndex(1, int64_t{1} << 32, 0, 5), InternalError);
}

}  // namespace
}  // namespace softmoe::trainer
