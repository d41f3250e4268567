// SPDX-License-Identifier: Apache-2.0
//
// router_health.h - how each layer's router uses its experts: load entropy,
// dead experts, tokens at the cap and without an expert, truncated mass
// (SPEC.md 5.2). It is read from passes without noise, after training; training
// itself computes none of it.
#ifndef SOFTMOE_TRAINER_EVALUATION_ROUTER_HEALTH_H_
#define SOFTMOE_TRAINER_EVALUATION_ROUTER_HEALTH_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "optimized/communicator/communicator.h"
#include "optimized/step.h"
#include "trainer/evaluation/routing_totals.h"
#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// The entropy of the shares of the load in nats, in [0, ln experts]; 0 where no
// token went anywhere.
double LoadEntropy(std::span<const int64_t> tokens_per_expert);

// Sums over balance groups. They are integers and, for the truncated mass,
// doubles added in the order of Add, so that only the order of groups decides
// the bits.
class RouterHealthTotals {
 public:
  explicit RouterHealthTotals(const Config& config);

  // Adds, on each rank, the groups that the ranks processed at the same time,
  // rank r the r-th; ranks beyond the last group add nothing. The caps must be
  // those of the earlier groups.
  //
  //   groups  the reports of the passes, at most one per rank
  //   layers  Model::LastRouting of each layer after this rank's own pass
  void Add(std::span<const optimized::StepStats> groups,
           std::span<const optimized::RoutingView> layers,
           optimized::Communicator& communicator);

  // [num_layers]. Requires at least one added group.
  std::vector<RouterHealth> Get() const;

 private:
  const bool lapsum_, fallback_;
  const int64_t num_experts_;
  RoutingTotals totals_;
  std::vector<int64_t> max_active_;       // [layer] the cap; 0: not known yet
  std::vector<int64_t> below_cutoff_;     // [layer] tokens
  std::vector<double> truncated_weight_;  // [layer] sum over tokens
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_ROUTER_HEALTH_H_
