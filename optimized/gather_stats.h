// SPDX-License-Identifier: Apache-2.0
//
// gather_stats.h - gives every rank what the groups of all ranks counted.
#ifndef SOFTMOE_OPTIMIZED_GATHER_STATS_H_
#define SOFTMOE_OPTIMIZED_GATHER_STATS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "optimized/communicator/communicator.h"
#include "optimized/step.h"

namespace softmoe::optimized {

// Returns the statistics of all ranks' groups, bit for bit, in rank order. All
// ranks must call it.
//
//   own  those of this rank's groups; the same number on every rank
std::vector<StepStats> GatherStats(std::span<const StepStats> own,
                                   const ModelConfig& model,
                                   Communicator& communicator);

// Bytes that are sent for each group.
int64_t StatsBytes(const ModelConfig& model);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GATHER_STATS_H_
