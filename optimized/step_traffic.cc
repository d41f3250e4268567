// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_traffic.h"

#include <algorithm>

#include "core/config/parameter_layout.h"
#include "kernels/adamw.h"
#include "kernels/simt/bf16.h"
#include "optimized/communicator/shards.h"
#include "optimized/gather_stats.h"
#include "optimized/parameter_shards.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

// Bytes of rank `rank`'s shard of a bucket, as passes read its parameters.
int64_t ParameterBytes(const Config& config, const Fp32Tensors& fp32,
                       const Shards& shards, int rank) {
  const auto r = static_cast<size_t>(rank);
  if (config.training.precision == Precision::kFp32) {
    return kFloat * shards[r].size();
  }
  return static_cast<int64_t>(sizeof(kernels::Bf16)) * shards[r].size() +
         kFloat * fp32.PackedShards(shards)[r].size();
}

}  // namespace

StepTraffic TrafficOfStep(const Config& config, int ranks, int from, int to) {
  const GroupRange groups =
      GroupsOfRank(NumGroups(config.training), ranks, from);
  if (from == to) return {};
  const ParameterLayout layout(config);
  const Fp32Tensors fp32(layout);
  StepTraffic traffic;
  for (const Bucket& bucket : ParameterBuckets(layout, ranks)) {
    const Shard& own = bucket.shards[static_cast<size_t>(from)];
    traffic.gradients += kFloat * bucket.shards[static_cast<size_t>(to)].size();
    traffic.parameters += ParameterBytes(config, fp32, bucket.shards, from);
    traffic.norm += static_cast<int64_t>(sizeof(double)) *
                    (kernels::SumOfSquaresScratch(own.end) -
                     kernels::SumOfSquaresScratch(own.begin));
  }
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
