// SPDX-License-Identifier: Apache-2.0
//
// step_traffic.h - what ranks send each other in an update (ranked_updater.h),
// computed from the configuration: plans show it, and a test counts it.
#ifndef SOFTMOE_OPTIMIZED_STEP_TRAFFIC_H_
#define SOFTMOE_OPTIMIZED_STEP_TRAFFIC_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::optimized {

// Bytes that one rank sends to one other. Parameters are sent as passes read
// them: in bf16 all as bf16, and those that are read in fp32 also as fp32.
struct StepTraffic {
  int64_t gradients = 0;   // the other's shard
  int64_t parameters = 0;  // its own shard, after the update
  int64_t norm = 0;        // the blocks of its own shard
  int64_t statistics = 0;  // its own groups

  int64_t total() const { return gradients + parameters + norm + statistics; }
};

// What rank `from` sends to rank `to`; nothing to itself. Errors: ConfigError
// if the balance groups do not divide among the ranks.
StepTraffic TrafficOfStep(const Config& config, int ranks, int from, int to);

// The sum over all other ranks, for the rank that sends most.
int64_t MostBytesOfStep(const Config& config, int ranks);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_STEP_TRAFFIC_H_
