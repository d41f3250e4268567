// SPDX-License-Identifier: Apache-2.0
#include "optimized/rank_groups.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::optimized {
namespace {

using Nodes = std::set<std::pair<int64_t, int64_t>>;

// All nodes of the tree, as gradient_tree.h defines it.
void AddNodes(int64_t begin, int64_t end, Nodes* nodes) {
  nodes->insert({begin, end});
  if (end - begin == 1) return;
  const int64_t middle = begin + (end - begin) / 2;
  AddNodes(begin, middle, nodes);
  AddNodes(middle, end, nodes);
}

TEST(RankGroups, AreSubtreesExactlyWhereTheTreeHasThemAsNodes) {
  int subtrees = 0, others = 0;
  for (int64_t groups = 1; groups <= 96; ++groups) {
    Nodes nodes;
    AddNodes(0, groups, &nodes);
    for (int64_t ranks = 1; ranks <= groups; ++ranks) {
      if (groups % ranks != 0) continue;
      bool all = true;
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const GroupRange range = GroupsOfRank(groups, ranks, rank);
        EXPECT_EQ(range.begin, next);
        EXPECT_EQ(range.size(), groups / ranks);
        next = range.end;
        all = all && nodes.count({range.begin, range.end}) == 1;
      }
      EXPECT_EQ(next, groups);
      EXPECT_EQ(RanksAreSubtrees(groups, ranks), all)
          << groups << " groups, " << ranks << " ranks";
      ++(all ? subtrees : others);
    }
  }
  EXPECT_GT(subtrees, 0);
  EXPECT_GT(others, 0);
}

TEST(RankGroups, OfThePaperAreSubtrees) {
  EXPECT_EQ(NumGroups({}), 240 / 30);
  EXPECT_TRUE(RanksAreSubtrees(240 / 30, 8));
  EXPECT_TRUE(RanksAreSubtrees(600 / 30, 20));
}

TEST(RankGroups, ThatDoNotDivideAreRefusedWithWhatWouldDo) {
  const auto message = [](int64_t groups, int64_t ranks) -> std::string {
    return MessageOf<ConfigError>([&] { GroupsOfRank(groups, ranks, 0); });
  };
  EXPECT_TRUE(Says(message(6, 4), "6 balance groups",
                   "among 4 ranks; start 1, 2, 3 or 6 ranks"));
  EXPECT_TRUE(Says(message(2, 3), "start 1 or 2 ranks"));
  EXPECT_TRUE(Says(message(1, 2), "start 1 rank"));
  EXPECT_THROW(RanksAreSubtrees(6, 4), ConfigError);
}

TEST(RankGroups, RefuseNumbersThatMeanNothing) {
  EXPECT_THROW(GroupsOfRank(0, 1, 0), InternalError);
  EXPECT_THROW(GroupsOfRank(1, 0, 0), InternalError);
  EXPECT_THROW(GroupsOfRank(4, 2, 2), InternalError);
  EXPECT_THROW(GroupsOfRank(4, 2, -1), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
