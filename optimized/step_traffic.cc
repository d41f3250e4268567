// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_traffic.h"

#include <algorithm>

#include "core/config/parameter_layout.h"
#include "kernels/adamw.h"
#include "optimized/communicator/shards.h"
#include "optimized/gather_stats.h"
#include "optimized/memory_plan.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {

StepTraffic TrafficOfStep(const Config& config, int ranks, int from, int to) {
  const GroupRange groups =
      GroupsOfRank(NumGroups(config.training), ranks, from);
  if (from == to) return {};
  const Shards shards = ShareOut(ParameterLayout(config).total,
                                 kernels::kSumOfSquaresBlock, ranks);
  const Shard& own = shards[static_cast<size_t>(from)];
  const Shard& other = shards[static_cast<size_t>(to)];
  StepTraffic traffic;
  traffic.gradients = static_cast<int64_t>(sizeof(float)) * other.size();
  traffic.parameters = static_cast<int64_t>(sizeof(float)) * own.size();
  traffic.norm = static_cast<int64_t>(sizeof(double)) *
                 (kernels::SumOfSquaresScratch(own.end) -
                  kernels::SumOfSquaresScratch(own.begin));
  traffic.statistics = groups.size() * StatsBytes(config.model);
  return traffic;
}

int64_t MostBytesOfStep(const Config& config, int ranks) {
  int64_t most = 0;
  for (int from = 0; from < ranks; ++from) {
    int64_t bytes = 0;
    for (int to = 0; to < ranks; ++to) {
      bytes += TrafficOfStep(config, ranks, from, to).total();
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace softmoe::optimized
