// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "core/errors.h"
#include "core/philox.h"
#include "kernels/adamw.h"
#include "optimized/communicator/in_process.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

// The gradient of a group: numbers over many binades, so that the order of a
// sum shows in its bits.
void FillLeaf(int64_t group, std::span<float> gradient) {
  const RandomKey key{5, RandomStream::kTestData, 0,
                      static_cast<uint32_t>(group)};
  for (size_t i = 0; i < gradient.size(); ++i) {
    const auto words = PhiloxWords(key, i);
    gradient[i] = static_cast<float>(
        std::ldexp(UniformFromWord(words[0]) - 0.5, words[1] % 16));
  }
}

Floats TreeSum(int64_t size, GroupRange groups, ThreadPool& pool) {
  Floats sum(static_cast<size_t>(size), NAN);
  GradientTree(size, groups.size(), pool)
      .Sum(groups.begin, groups.end, FillLeaf, sum);
  return sum;
}

// Longer than any shard here.
constexpr int64_t kWhole = int64_t{1} << 20;

// What `ranks` ranks make of the gradients of `groups` groups: the shards one
// after the other.
Floats SumOfRanks(int64_t size, int64_t groups, int ranks,
                  int64_t piece = kWhole) {
  Floats whole(static_cast<size_t>(size), NAN);
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    ThreadPool pool(1 + communicator.rank() % 2);
    GradientExchange exchange(size, piece, CarrierKind::kHost, communicator,
                              pool);
    const Floats partial =
        TreeSum(size, GroupsOfRank(groups, ranks, communicator.rank()), pool);
    const Shard shard = exchange.own_shard();
    // Twice: buffers are used again.
    for (int round = 0; round < 2; ++round) {
      exchange.Sum(partial,
                   std::span(whole).subspan(static_cast<size_t>(shard.begin),
                                            static_cast<size_t>(shard.size())));
    }
    SOFTMOE_CHECK(communicator.sent_bytes() == 2 * 4 * (size - shard.size()))
        << communicator.sent_bytes();
  });
  return whole;
}

// From one element to a few blocks for each rank, whole blocks or not.
int64_t AnySize() {
  return *rc::gen::inRange<int64_t>(1, 6 * kernels::kSumOfSquaresBlock);
}

RC_GTEST_PROP(GradientExchange, GivesTheBitsOfOneProcessWhereRanksAreSubtrees,
              ()) {
  const auto ranks = *rc::gen::inRange(1, 9);
  const auto per_rank = *rc::gen::inRange<int64_t>(1, 6);
  const int64_t size = AnySize(), groups = ranks * per_rank;
  RC_PRE(RanksAreSubtrees(groups, ranks));
  ThreadPool pool(2);
  const auto piece = *rc::gen::inRange<int64_t>(500, 9000);
  const Floats alone = TreeSum(size, {0, groups}, pool);
  RC_ASSERT(SumOfRanks(size, groups, ranks) == alone);
  RC_ASSERT(SumOfRanks(size, groups, ranks, piece) == alone);
}

// The definition, literally.
float SumOverRanks(const std::vector<Floats>& partials, size_t begin,
                   size_t end, size_t i) {
  if (end - begin == 1) return partials[begin][i];
  const size_t middle = begin + (end - begin) / 2;
  return SumOverRanks(partials, begin, middle, i) +
         SumOverRanks(partials, middle, end, i);
}

RC_GTEST_PROP(GradientExchange, AddsTheRanksAlongTheTreeInAnyCase, ()) {
  const auto ranks = *rc::gen::inRange(1, 9);
  const int64_t size = AnySize(), groups = 2 * ranks;
  ThreadPool pool(2);
  std::vector<Floats> partials;
  for (int rank = 0; rank < ranks; ++rank) {
    partials.push_back(TreeSum(size, GroupsOfRank(groups, ranks, rank), pool));
  }
  const Floats sum = SumOfRanks(size, groups, ranks);
  for (size_t i = 0; i < sum.size(); ++i) {
    RC_ASSERT(sum[i] == SumOverRanks(partials, 0, partials.size(), i));
  }
}

TEST(GradientExchange, OrderMattersForTheseNumbers) {
  ThreadPool pool(1);
  // Six groups: three ranks hold no subtrees.
  EXPECT_NE(SumOfRanks(100, 6, 3), TreeSum(100, {0, 6}, pool))
      << "the other tests would pass with any order";
}

TEST(GradientExchange, ShardsBeginAtBlocksOfTheNorm) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    ThreadPool pool(1);
    const int64_t block = kernels::kSumOfSquaresBlock;
    const GradientExchange exchange(4 * block + 1, kWhole, CarrierKind::kHost,
                                    communicator, pool);
    SOFTMOE_CHECK(
        (exchange.shards() ==
         Shards{{0, block}, {block, 3 * block}, {3 * block, 4 * block + 1}}));
  });
}

TEST(GradientExchange, RefusesArraysOfAnotherSize) {
  const auto sum = [](size_t partial_size, size_t sum_size) {
    RunInProcessRanks(1, [&](Communicator& communicator) {
      ThreadPool pool(1);
      GradientExchange exchange(10, kWhole, CarrierKind::kHost, communicator,
                                pool);
      Floats result(sum_size);
      exchange.Sum(Floats(partial_size), result);
    });
  };
  sum(10, 10);
  EXPECT_THROW(sum(9, 10), InternalError);
  EXPECT_THROW(sum(10, 9), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
