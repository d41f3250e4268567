// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/shards.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

TEST(Overlap, IsWhatBothHave) {
  EXPECT_EQ(Overlap({2, 8}, {4, 10}), (Shard{4, 8}));
  EXPECT_EQ(Overlap({4, 10}, {2, 8}), (Shard{4, 8}));
  EXPECT_EQ(Overlap({2, 8}, {4, 5}), (Shard{4, 5}));
  EXPECT_EQ(Overlap({4, 5}, {2, 8}), (Shard{4, 5}));
}

TEST(Overlap, IsEmptyWhereNothingIsShared) {
  EXPECT_EQ(Overlap({2, 4}, {4, 6}).size(), 0);
  EXPECT_EQ(Overlap({2, 4}, {7, 9}).size(), 0);
  EXPECT_EQ(Overlap({7, 9}, {2, 4}).size(), 0);
}

RC_GTEST_PROP(ShareOut, CoversTheArrayInEvenShardsOfWholeBlocks, ()) {
  const auto size = *rc::gen::inRange<int64_t>(0, 5000);
  const auto block = *rc::gen::inRange<int64_t>(1, 300);
  const auto ranks = *rc::gen::inRange(1, 20);
  const Shards shards = ShareOut(size, block, ranks);
  RC_ASSERT(shards.size() == static_cast<size_t>(ranks));
  int64_t end = 0, fewest = size, most = 0, largest = 0;
  for (const Shard& shard : shards) {
    RC_ASSERT(shard.begin == end);
    RC_ASSERT(shard.begin % block == 0 || shard.begin == size);
    end = shard.end;
    const int64_t blocks = (shard.size() + block - 1) / block;
    fewest = std::min(fewest, blocks);
    most = std::max(most, blocks);
    largest = std::max(largest, shard.size());
  }
  RC_ASSERT(LargestShard(shards) == largest);
  RC_ASSERT(end == size);
  RC_ASSERT(most - fewest <= 1);
}

TEST(ShareOut, LeavesSomeRanksWithoutBlocks) {
  EXPECT_EQ(ShareOut(10, 8, 4), (Shards{{0, 0}, {0, 8}, {8, 8}, {8, 10}}));
}

TEST(Rows, LieOneAfterTheOther) {
  EXPECT_EQ(Rows(3, 2), (Shards{{0, 3}, {3, 6}}));
  EXPECT_EQ(Rows(0, 2), (Shards{{0, 0}, {0, 0}}));
}

TEST(Shifted, MovesEachShard) {
  EXPECT_EQ(Shifted({{3, 3}, {3, 6}}, -3), (Shards{{0, 0}, {0, 3}}));
}

TEST(PartsOf, AreWhereTheShardsAre) {
  std::vector<int> data = {5, 6, 7, 8};
  const auto parts = PartsOf(std::span(data), {{1, 1}, {1, 3}});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[0].empty());
  EXPECT_EQ(parts[1].data(), data.data() + 1);
  EXPECT_EQ(parts[1].size(), 2u);
}

TEST(ShareOut, RefusesWhatCannotBeShared) {
  EXPECT_THROW(ShareOut(-1, 8, 1), InternalError);
  EXPECT_THROW(ShareOut(8, 0, 1), InternalError);
  EXPECT_THROW(ShareOut(8, 8, 0), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
