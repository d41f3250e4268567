// SPDX-License-Identifier: Apache-2.0
//
// config_check.h - everything that is wrong with a configuration, key by key,
// so that a loader can say where in the user's file each value came from; and
// how a batch is divided: the sizes of micro-batches and balance groups that
// nobody set, and sizes to suggest instead of wrong ones.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe {

// Returns the divisor of `number`, among the multiples of `unit`, whose ratio
// to `wanted` is nearest to 1; 0 if there is none. (Two are never equally near:
// d*e = wanted^2 makes `wanted` itself such a divisor.) All arguments must be
// in [1, 2^20].
int64_t NearestDivisor(int64_t number, int64_t wanted, int64_t unit = 1);

// Derives the sizes that were not set from those that were. The micro-batch
// becomes the divisor of the global batch nearest to its default (in whole
// groups if the group was set), and the balance group becomes the divisor of
// the micro-batch nearest to its own default. Defaults that fit are kept. Sizes
// out of range are left to ConfigProblems.
void FollowBatchSizes(bool micro_batch_set, bool balance_group_set,
                      TrainingConfig* training);

struct ConfigProblem {
  std::string key;      // "router.tau"
  std::string message;  // "router.tau = -1.0 must be > 0; the default is ..."
};

// Return a problem for each key that has one: ranges, in the order of the keys,
// then relations between keys.
std::vector<ConfigProblem> ConfigProblems(const Config& config);
std::vector<ConfigProblem> RuntimeProblems(const RuntimeConfig& runtime);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_CHECK_H_
