// SPDX-License-Identifier: Apache-2.0
//
// routing_totals.h - routing counts summed over balance groups, and the
// metrics of SPEC.md 5.2 computed from them.
#ifndef SOFTMOE_TRAINER_EVALUATION_ROUTING_TOTALS_H_
#define SOFTMOE_TRAINER_EVALUATION_ROUTING_TOTALS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "optimized/model.h"

namespace softmoe::trainer {

// How unequally the tokens of one layer are spread over the experts, in the
// three readings of the paper's undefined "load variance" (population
// variance). All are 0 when no token went anywhere.
struct LoadVariance {
  double relative = 0;       // var / mean^2, the default reading
  double cv = 0;             // sd / mean
  double var_over_mean = 0;  // var / mean, in tokens
};
LoadVariance ComputeLoadVariance(std::span<const int64_t> tokens_per_expert);

// Sums of what the model reports per balance group. Counts are integers and the
// losses are added in the order of Add, so only the order of groups decides the
// bits.
class RoutingTotals {
 public:
  RoutingTotals(int64_t num_layers, int64_t num_experts);

  void Add(const optimized::StepStats& stats);

  int64_t num_groups() const { return num_groups_; }
  int64_t num_tokens() const { return num_tokens_; }
  // Language-model loss, nats per token.
  double MeanLoss() const;
  // Mean over groups of the sum over layers, coefficients included.
  double LoadBalanceLoss() const;
  double ZLoss() const;
  // Mean active experts per token: for each layer, and over all of them.
  std::vector<double> LayerActive() const;
  double MeanActive() const;
  // Share of (token, layer) pairs without an active expert, counted before
  // fallback = "top1" gives them one, which would hide that the cutoff is too
  // high.
  double ZeroActiveFraction() const;
  // The largest number of active experts that any token had in any layer.
  int64_t MostActive() const;
  std::vector<LoadVariance> LayerLoadVariance() const;

  // [layer][active experts], tokens; 0..num_experts.
  const std::vector<std::vector<int64_t>>& active_histogram() const {
    return active_histogram_;
  }
  // [layer][expert], tokens.
  const std::vector<std::vector<int64_t>>& tokens_per_expert() const {
    return tokens_per_expert_;
  }

 private:
  int64_t num_groups_ = 0;
  int64_t num_tokens_ = 0;
  double loss_sum_ = 0;
  double load_balance_loss_sum_ = 0;
  double z_loss_sum_ = 0;
  int64_t below_cutoff_ = 0;  // (token, layer) pairs
  std::vector<std::vector<int64_t>> active_histogram_;
  std::vector<std::vector<int64_t>> tokens_per_expert_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_ROUTING_TOTALS_H_
