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

// Hands out `values` in pieces of `piece`, and counts the visits.
ValueSource Pieces(const std::vector<float>& values, size_t piece,
                   int* visits = nullptr) {
  return [&values, piece, visits](const ValueVisitor& visit) {
    if (visits != nullptr) ++*visits;
    for (size_t i = 0; i < values.size(); i += piece) {
      visit(std::span<const float>(values).subspan(
          i, std::min(piece, values.size() - i)));
    }
  };
}

TEST(RankMidpoint, LiesBetweenTheRankAndTheNext) {
  const std::vector<float> values = {0.25f, 4.0f, 1.0f, 2.0f, 0.5f};
  const RankMidpoint result = FindRankMidpoint(Pieces(values, 2), 2);
  EXPECT_EQ(result.larger, 2.0f);
  EXPECT_EQ(result.smaller, 1.0f);
  EXPECT_EQ(result.midpoint, 1.5);
  EXPECT_EQ(result.count, 5);
}

TEST(RankMidpoint, ClampsTheRank) {
  const std::vector<float> values = {1.0f, 2.0f, 4.0f};
  EXPECT_EQ(FindRankMidpoint(Pieces(values, 3), 0).midpoint, 3.0);
  EXPECT_EQ(FindRankMidpoint(Pieces(values, 3), 99).midpoint, 1.5);
}

RC_GTEST_PROP(RankMidpointProperty, SortingGivesTheSame, ()) {
  // Few distinct values, so that ties at the rank happen; zeros of both
  // signs and subnormals among them.
  const auto values = *rc::gen::container<std::vector<float>>(rc::gen::oneOf(
      rc::gen::element(0.0f, -0.0f, 1e-40f, 1.0f, 1.5f),
      rc::gen::map(rc::gen::inRange(0, 1 << 20),
                   [](int i) { return static_cast<float>(i) * 0x1p-18f; })));
  RC_PRE(values.size() >= 2u);
  const auto rank = *rc::gen::inRange<int64_t>(1, values.size());
  const auto piece = *rc::gen::inRange<size_t>(1, 9);
  auto sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  int visits = 0;
  const RankMidpoint kept =
      FindRankMidpoint(Pieces(values, piece, &visits), rank, values.size());
  RC_ASSERT(visits == 1);
  const RankMidpoint counted =
      FindRankMidpoint(Pieces(values, piece, &visits), rank, values.size() - 1);
  RC_ASSERT(visits == 3);
  RC_ASSERT(kept.larger == sorted[rank - 1]);
  RC_ASSERT(kept.smaller == sorted[rank]);
  RC_ASSERT(counted.larger == kept.larger);
  RC_ASSERT(counted.smaller == kept.smaller);
  RC_ASSERT(counted.midpoint == kept.midpoint);
}

TEST(RankMidpoint, RefusesWhatIsNoWeight) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity(), -1.0f}) {
    const std::vector<float> values = {1.0f, bad, 2.0f};
    EXPECT_THROW(FindRankMidpoint(Pieces(values, 3), 1), NumericsError) << bad;
    EXPECT_THROW(FindRankMidpoint(Pieces(values, 3), 1, 1), NumericsError);
  }
  const std::vector<float> lonely = {1.0f};
  EXPECT_THROW(FindRankMidpoint(Pieces(lonely, 1), 1), DataError);
}

TEST(RankMidpoint, RefusesASourceThatChanges) {
  int visits = 0;
  const ValueSource shrinking = [&](const ValueVisitor& visit) {
    std::vector<float> values(visits++ == 0 ? 10 : 9, 1.0f);
    visit(values);
  };
  EXPECT_THROW(FindRankMidpoint(shrinking, 3, 5), InternalError);
}

}  // namespace
}  // namespace softmoe::trainer
