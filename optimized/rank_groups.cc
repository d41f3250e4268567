// SPDX-License-Identifier: Apache-2.0
#include "optimized/rank_groups.h"

#include <bit>
#include <string>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

int64_t GroupsPerRank(int64_t groups, int64_t ranks) {
  SOFTMOE_CHECK(groups > 0 && ranks > 0) << groups << " for " << ranks;
  if (groups % ranks == 0) return groups / ranks;
  std::string possible;
  for (int64_t n = 1; n <= groups; ++n) {
    if (groups % n != 0) continue;
    if (n > 1) possible += n < groups ? ", " : " or ";
    possible += std::to_string(n);
  }
  throw ConfigError(std::to_string(groups) +
                    " balance groups in a step (global_batch_sequences / "
                    "balance_group_sequences) cannot be divided evenly among " +
                    std::to_string(ranks) + " ranks; start " + possible +
                    (groups > 1 ? " ranks" : " rank"));
}

}  // namespace

int64_t NumGroups(const TrainingConfig& training) {
  return training.global_batch_sequences / training.balance_group_sequences;
}

GroupRange GroupsOfRank(int64_t groups, int64_t ranks, int64_t rank) {
  const int64_t each = GroupsPerRank(groups, ranks);
  SOFTMOE_CHECK(0 <= rank && rank < ranks) << "rank " << rank;
  return {rank * each, (rank + 1) * each};
}

bool RanksAreSubtrees(int64_t groups, int64_t ranks) {
  // A node of n ranks with m groups each is halved at group floor(n m / 2).
  // That is between two ranks for every even n; for an odd n > 1 only if m = 1.
  // Halving meets an odd n > 1 unless the number of ranks is a power of two.
  return GroupsPerRank(groups, ranks) == 1 ||
         std::has_single_bit(static_cast<uint64_t>(ranks));
}

}  // namespace softmoe::optimized
