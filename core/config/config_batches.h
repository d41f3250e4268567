// SPDX-License-Identifier: Apache-2.0
//
// config_batches.h - how a batch is cut: the sizes of micro-batches and balance
// groups that nobody set, and those that would do instead of wrong ones.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_BATCHES_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_BATCHES_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe {

// The divisor of `number` whose ratio to `wanted` is nearest to 1, among the
// multiples of `unit`; 0 if there is none. (Two are never as near: d*e =
// wanted^2 makes `wanted` itself such a divisor.) All arguments are in [1,
// 2^20].
int64_t NearestDivisor(int64_t number, int64_t wanted, int64_t unit = 1);

// Gives the sizes that were not set those that follow from the ones that were:
// the micro-batch is the divisor of the global batch nearest to its default
// (and whole groups, if those were set), the balance group is the divisor of
// the micro-batch nearest to its own. Where the defaults fit they stay. Sizes
// out of range are left to ConfigProblems.
void FollowBatchSizes(bool micro_batch_set, bool balance_group_set,
                      TrainingConfig* training);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_BATCHES_H_
