// SPDX-License-Identifier: Apache-2.0
//
// rank_groups.h - the balance groups of an update, which of them each rank has,
// and what that means for the bits of a result (DESIGN.md, rulings 6 and 20).
#ifndef SOFTMOE_OPTIMIZED_RANK_GROUPS_H_
#define SOFTMOE_OPTIMIZED_RANK_GROUPS_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::optimized {

// The balance groups of an update.
int64_t NumGroups(const TrainingConfig& training);

// Balance groups [begin, end) of a step.
struct GroupRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const GroupRange&, const GroupRange&) = default;
};

// The groups of one rank: as many as any other has, in the order of ranks.
//
//   groups, ranks  >= 1
//   rank           in [0, ranks)
// Errors   ConfigError if the groups do not divide among the ranks: names the
//          numbers of ranks for which they do.
GroupRange GroupsOfRank(int64_t groups, int64_t ranks, int64_t rank);

// Whether the groups of each rank are a subtree of the tree along which
// gradients are added (gradient_tree.h). Then the tree over the ranks' sums is
// the rest of that tree, and all bits are those of one process. Otherwise they
// depend on the number of ranks. Errors: as GroupsOfRank.
bool RanksAreSubtrees(int64_t groups, int64_t ranks);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_RANK_GROUPS_H_
