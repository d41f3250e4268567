// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/errors.h"
#include "core/testing/random_test_util.h"

namespace softmoe::optimized {
namespace {

constexpr int64_t kSize = 53;

std::vector<float> Leaf(int64_t group) {
  return FloatsOfManyBinades(
      kSize, {.seed = 5, .layer = static_cast<uint32_t>(group)});
}

void FillLeaf(int64_t group, std::span<float> gradient) {
  std::ranges::copy(Leaf(group), gradient.begin());
}

std::vector<float> TreeSum(int64_t begin, int64_t end, ThreadPool& pool) {
  std::vector<float> sum(kSize, NAN);
  GradientTree(kSize, end - begin, pool).Sum(begin, end, FillLeaf, sum);
  return sum;
}

// The definition, taken literally.
float Definition(int64_t begin, int64_t end, int64_t i) {
  if (end - begin == 1) return Leaf(begin)[static_cast<size_t>(i)];
  const int64_t middle = begin + (end - begin) / 2;
  return Definition(begin, middle, i) + Definition(middle, end, i);
}

TEST(GradientTree, AddsInTheDefinedOrder) {
  ThreadPool pool(2);
  for (int64_t groups = 1; groups <= 17; ++groups) {
    const std::vector<float> sum = TreeSum(0, groups, pool);
    for (int64_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(sum[i], Definition(0, groups, i)) << groups << " groups";
    }
  }
}

TEST(GradientTree, OrderMattersForTheseNumbers) {
  ThreadPool pool(1);
  const std::vector<float> sum = TreeSum(0, 8, pool);
  int different = 0;
  for (int64_t i = 0; i < kSize; ++i) {
    float chain = 0;
    for (int64_t g = 0; g < 8; ++g) chain += Leaf(g)[static_cast<size_t>(i)];
    different += chain != sum[i];
  }
  EXPECT_GT(different, 0) << "the other tests would pass with any order";
}

TEST(GradientTree, CallsEveryGroupOnceInAscendingOrder) {
  ThreadPool pool(1);
  std::vector<int64_t> seen;
  std::vector<float> sum(kSize);
  GradientTree(kSize, 7, pool)
      .Sum(
          3, 10,
          [&](int64_t group, std::span<float> gradient) {
            seen.push_back(group);
            FillLeaf(group, gradient);
          },
          sum);
  EXPECT_EQ(seen, (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9}));
}

// Ruling 6: 2^j ranks with equal contiguous parts, then a tree over the ranks.
RC_GTEST_PROP(GradientTree, AnyPowerOfTwoShardingGivesTheSameBits, ()) {
  const int64_t ranks = int64_t{1} << *rc::gen::inRange(0, 4);
  const int64_t groups = ranks * *rc::gen::inRange<int64_t>(1, 8);
  ThreadPool pool(2);
  std::vector<std::vector<float>> shards;
  for (int64_t r = 0; r < ranks; ++r) {
    shards.push_back(
        TreeSum(r * groups / ranks, (r + 1) * groups / ranks, pool));
  }
  std::vector<float> sum(kSize);
  GradientTree(kSize, ranks, pool)
      .Sum(
          0, ranks,
          [&](int64_t rank, std::span<float> gradient) {
            std::copy(shards[rank].begin(), shards[rank].end(),
                      gradient.begin());
          },
          sum);
  RC_ASSERT(sum == TreeSum(0, groups, pool));
}

TEST(GradientTree, RefusesMoreGroupsThanItHasBuffersFor) {
  ThreadPool pool(1);
  GradientTree tree(kSize, 4, pool);
  std::vector<float> sum(kSize);
  EXPECT_THROW(tree.Sum(0, 5, FillLeaf, sum), InternalError);
  EXPECT_THROW(tree.Sum(2, 2, FillLeaf, sum), InternalError);
  std::vector<float> longer(kSize + 1);
  EXPECT_THROW(tree.Sum(0, 4, FillLeaf, longer), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
