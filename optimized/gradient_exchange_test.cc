// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/errors.h"
#include "core/testing/random_test_util.h"
#include "kernels/adamw.h"
#include "optimized/communicator/in_process.h"
#include "optimized/gradient_tree.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

// The gradient of a group.
void FillGradient(int64_t group, std::span<float> gradient) {
  std::ranges::copy(
      FloatsOfManyBinades(std::ssize(gradient),
                          {.seed = 5, .layer = static_cast<uint32_t>(group)}),
      gradient.begin());
}

Floats TreeSum(int64_t size, GroupRange groups, ThreadPool& pool) {
  Floats sum(static_cast<size_t>(size), NAN);
  GradientTree(size, groups.size(), pool)
      .Sum(groups.begin, groups.end, FillGradient, sum);
  return sum;
}

// Longer than any shard here.
constexpr int64_t kWhole = int64_t{1} << 20;

// Two buckets of `size` gradients, cut at a block of the norm: the later one
// first, as a backward pass completes them.
std::vector<Bucket> CutAt(int64_t block, int64_t size, int ranks) {
  const int64_t cut = std::min(block * kernels::kSumOfSquaresBlock, size);
  const auto shards = [&](int64_t begin, int64_t end) {
    return Shifted(ShareOut(end - begin, kernels::kSumOfSquaresBlock, ranks),
                   begin);
  };
  return {{shards(cut, size), cut}, {shards(0, cut), 0}};
}

// The sums that `ranks` ranks compute from the gradients of `groups` groups,
// with every shard in its place.
Floats SumOfRanks(int64_t size, int64_t groups, int ranks, int64_t block = 2,
                  int64_t piece = kWhole) {
  Floats whole(static_cast<size_t>(size), NAN);
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    ThreadPool pool(1 + communicator.rank() % 2);
    GradientExchange exchange(CutAt(block, size, ranks), piece,
                              CarrierKind::kHost, communicator, pool);
    const std::vector<PackedPiece> own =
        PiecesOfRank(exchange.buckets(), communicator.rank());
    // Twice, since buffers are reused.
    for (int round = 0; round < 2; ++round) {
      Floats gradient =
          TreeSum(size, GroupsOfRank(groups, ranks, communicator.rank()), pool);
      exchange.Finish(gradient);
      for (const PackedPiece& shard : own) {
        std::ranges::copy(PartOf(std::span(gradient), shard.range()),
                          whole.begin() + shard.offset);
      }
    }
    SOFTMOE_CHECK(communicator.sent_bytes() == 2 * 4 * (size - SizeOf(own)))
        << communicator.sent_bytes();
  });
  return whole;
}

// From one element to a few blocks per rank, whole blocks or not.
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
  const auto block = *rc::gen::inRange<int64_t>(0, 7);
  const auto piece = *rc::gen::inRange<int64_t>(500, 9000);
  const Floats alone = TreeSum(size, {0, groups}, pool);
  RC_ASSERT(SumOfRanks(size, groups, ranks, block) == alone);
  RC_ASSERT(SumOfRanks(size, groups, ranks, block, piece) == alone);
}

// The definition, taken literally.
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

TEST(GradientExchange, SumsTheBucketsThatAreComplete) {
  constexpr int64_t kSize = 5 * kernels::kSumOfSquaresBlock;
  constexpr int64_t kCut = 2 * kernels::kSumOfSquaresBlock;
  RunInProcessRanks(2, [](Communicator& communicator) {
    ThreadPool pool(1);
    GradientExchange exchange(CutAt(2, kSize, 2), kWhole, CarrierKind::kHost,
                              communicator, pool);
    SOFTMOE_CHECK(!exchange.carrier().RunsBeside());
    const auto r = static_cast<size_t>(communicator.rank());
    const Shard late = exchange.buckets()[0].shards[r];
    const Shard early = exchange.buckets()[1].shards[r];
    Floats gradient(kSize, static_cast<float>(1 + communicator.rank()));
    const auto is = [&](const Shard& shard, float value) {
      return std::ranges::count(PartOf(std::span(gradient), shard), value) ==
             shard.size();
    };
    const float own = gradient[0];
    exchange.SumDownTo(kCut + 1, gradient);
    SOFTMOE_CHECK(is(late, own) && is(early, own));
    exchange.SumDownTo(kCut, gradient);
    SOFTMOE_CHECK(is(late, 3) && is(early, own));
    exchange.SumDownTo(1, gradient);
    SOFTMOE_CHECK(is(late, 3) && is(early, own));
    exchange.Finish(gradient);
    SOFTMOE_CHECK(is(late, 3) && is(early, 3));
  });
}

TEST(GradientExchange, RefusesArraysOfAnotherSize) {
  const auto sum = [](size_t size) {
    RunInProcessRanks(1, [&](Communicator& communicator) {
      ThreadPool pool(1);
      GradientExchange exchange(CutAt(0, 10, 1), kWhole, CarrierKind::kHost,
                                communicator, pool);
      Floats gradient(size);
      exchange.Finish(gradient);
    });
  };
  sum(10);
  EXPECT_THROW(sum(9), InternalError);
  EXPECT_THROW(sum(11), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
