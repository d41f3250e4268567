// SPDX-License-Identifier: Apache-2.0
//
// rank_plan.h - what data-parallel training demands of each GPU and of the
// links between them, computed from the configuration alone.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_RANK_PLAN_H_
#define SOFTMOE_EXPERIMENTS_PLAN_RANK_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "experiments/grids/cost_model.h"
#include "experiments/plan/grid_estimate.h"
#include "optimized/memory_plan.h"

namespace softmoe::experiments {

// Bandwidth of one GPU in one direction, bytes/s: ASSUMED, NVLink of an H100
// within a node, a network card of 400 Gbit/s for each GPU between nodes.
inline constexpr double kLinkInNode = 450e9, kLinkBetweenNodes = 50e9;

// What the device of one of `ranks` ranks holds in the first step, by part: its
// parameters, what it needs to add the gradients of its own groups, its shards
// of their sum and of the moments, and what a pass needs. Throws ConfigError if
// the balance groups do not divide among the ranks.
optimized::MemoryPlan RankMemory(const Config& config, int64_t ranks,
                                 Recompute recompute);

// The setting that recomputes least among those with which RankMemory fits into
// a device of `gpu_bytes` bytes, apart from what is reserved there
// (PlannableMemory); nullopt if none fits.
std::optional<Recompute> RecomputeThatFits(const Config& config, int64_t ranks,
                                           double gpu_bytes);

// Where the time of a step goes on each rank, in seconds.
struct RankTimes {
  double backward = 0;    // all of the rank's groups, at the assumed MFU
  double gradients = 0;   // to send them, if nothing else is done
  double parameters = 0;  // to send them, if nothing else is done
  // The part of `gradients` that the backward pass can cover: over NCCL a rank
  // with one group sends each layer's as soon as they exist; those of the
  // embedding and the first layer come last. 0 with several groups.
  double can_be_hidden = 0;

  double share() const {
    const double all = gradients + parameters;
    return all > 0 ? can_be_hidden / all : 0;
  }
};

// Estimates the times for `cluster.gpus` ranks, laid out in nodes as scripts do
// (slurm_jobs.h), and a mean of `active_experts`. A rank's links in its node
// and between nodes are assumed to work at the same time.
RankTimes EstimateRankTimes(const Config& config, double active_experts,
                            const Cluster& cluster);

// The divisors of `groups`: numbers of ranks that give the same bits as one
// rank, and numbers that each give bits of their own.
struct RankNumbers {
  std::vector<int64_t> same_bits, own_bits;
};
RankNumbers NumbersOfRanks(int64_t groups);

// The section of a plan on the ranks of one corpus, whose rows are `rows`; ""
// without GPUs, or if the batch cannot be split among them.
std::string DescribeRanks(const std::vector<RowEstimate>& rows,
                          const Cluster& machine);

// Explains the words and numbers of DescribeRanks.
std::string RankLegend(const Cluster& machine);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_RANK_PLAN_H_
