// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_midpoint.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

TEST(RankMidpoint, LiesBetweenTheRankAndTheNext) {
  std::vector<float> values = {0.25f, 4.0f, 1.0f, 2.0f, 0.5f};
  const RankMidpoint result = FindRankMidpoint(values, 2);
  EXPECT_EQ(result.larger, 2.0f);
  EXPECT_EQ(result.smaller, 1.0f);
  EXPECT_EQ(result.midpoint, 1.5);
  EXPECT_EQ(result.rank, 2);
}

TEST(RankMidpoint, ClampsTheRank) {
  std::vector<float> values = {1.0f, 2.0f, 4.0f};
  EXPECT_EQ(FindRankMidpoint(values, 0).midpoint, 3.0);
  EXPECT_EQ(FindRankMidpoint(values, 99).midpoint, 1.5);
  EXPECT_EQ(FindRankMidpoint(values, 99).rank, 2);
}

RC_GTEST_PROP(RankMidpointProperty, SortingGivesTheSame, ()) {
  // Few distinct values, so that ties at the rank happen; zeros of both
  // signs and subnormals among them.
  auto values = *rc::gen::container<std::vector<float>>(rc::gen::oneOf(
      rc::gen::element(0.0f, -0.0f, 1e-40f, 1.0f, 1.5f),
      rc::gen::map(rc::gen::inRange(0, 1 << 20),
                   [](int i) { return static_cast<float>(i) * 0x1p-18f; })));
  RC_PRE(values.size() >= 2u);
  const auto rank = *rc::gen::inRange<int64_t>(1, values.size());
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const RankMidpoint found = FindRankMidpoint(values, rank);
  RC_ASSERT(found.larger == sorted[rank - 1]);
  RC_ASSERT(found.smaller == sorted[rank]);
  RC_ASSERT(found.midpoint ==
            (double{sorted[rank - 1]} + double{sorted[rank]}) / 2);
}

TEST(RankMidpoint, RefusesWhatIsNoWeight) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity(), -1.0f}) {
    std::vector<float> values = {1.0f, bad, 2.0f};
    EXPECT_THROW(FindRankMidpoint(values, 1), NumericsError) << bad;
  }
  std::vector<float> lonely = {1.0f};
  EXPECT_THROW(FindRankMidpoint(lonely, 1), DataError);
  EXPECT_THROW(FindRankMidpoint({}, 1), DataError);
}

}  // namespace
}  // namespace softmoe::trainer
