// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/routing_totals.h"

#include <cmath>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

// The active experts of all tokens; histogram[n] tokens have n of them.
int64_t NumActive(const std::vector<int64_t>& histogram) {
  int64_t active = 0;
  for (size_t n = 0; n < histogram.size(); ++n) {
    active += static_cast<int64_t>(n) * histogram[n];
  }
  return active;
}

}  // namespace

LoadVariance ComputeLoadVariance(std::span<const int64_t> tokens_per_expert) {
  const double experts = static_cast<double>(tokens_per_expert.size());
  int64_t total = 0;
  for (int64_t tokens : tokens_per_expert) total += tokens;
  if (total == 0) return {};
  const double mean = static_cast<double>(total) / experts;
  double squares = 0;
  for (int64_t tokens : tokens_per_expert) {
    const double deviation = static_cast<double>(tokens) - mean;
    squares += deviation * deviation;
  }
  const double variance = squares / experts;
  return {.relative = variance / (mean * mean),
          .cv = std::sqrt(variance) / mean,
          .var_over_mean = variance / mean};
}

RoutingTotals::RoutingTotals(int64_t num_layers, int64_t num_experts)
    : active_histogram_(num_layers, std::vector<int64_t>(num_experts + 1)),
      tokens_per_expert_(num_layers, std::vector<int64_t>(num_experts)) {}

void RoutingTotals::Add(const optimized::StepStats& stats) {
  SOFTMOE_CHECK(stats.layers.size() == active_histogram_.size())
      << "layers=" << stats.layers.size();
  ++num_groups_;
  num_tokens_ += stats.num_tokens;
  loss_sum_ += stats.loss_sum;
  for (size_t layer = 0; layer < stats.layers.size(); ++layer) {
    const optimized::LayerStats& from = stats.layers[layer];
    load_balance_loss_sum_ += from.load_balance_loss;
    z_loss_sum_ += from.z_loss;
    below_cutoff_ += from.tokens_below_cutoff;
    SOFTMOE_CHECK(
        from.active_histogram.size() == active_histogram_[layer].size() &&
        from.tokens_per_expert.size() == tokens_per_expert_[layer].size());
    for (size_t n = 0; n < from.active_histogram.size(); ++n) {
      active_histogram_[layer][n] += from.active_histogram[n];
    }
    for (size_t e = 0; e < from.tokens_per_expert.size(); ++e) {
      tokens_per_expert_[layer][e] += from.tokens_per_expert[e];
    }
  }
}

double RoutingTotals::MeanLoss() const {
  return loss_sum_ / static_cast<double>(num_tokens_);
}
double RoutingTotals::LoadBalanceLoss() const {
  return load_balance_loss_sum_ / static_cast<double>(num_groups_);
}
double RoutingTotals::ZLoss() const {
  return z_loss_sum_ / static_cast<double>(num_groups_);
}

std::vector<double> RoutingTotals::LayerActive() const {
  std::vector<double> mean;
  for (const std::vector<int64_t>& histogram : active_histogram_) {
    mean.push_back(static_cast<double>(NumActive(histogram)) /
                   static_cast<double>(num_tokens_));
  }
  return mean;
}

double RoutingTotals::MeanActive() const {
  // One division of two integers, so that sparse top-k gives exactly k.
  int64_t active = 0;
  for (const std::vector<int64_t>& histogram : active_histogram_) {
    active += NumActive(histogram);
  }
  return static_cast<double>(active) /
         static_cast<double>(num_tokens_ *
                             static_cast<int64_t>(active_histogram_.size()));
}

double RoutingTotals::ZeroActiveFraction() const {
  return static_cast<double>(below_cutoff_) /
         static_cast<double>(num_tokens_ *
                             static_cast<int64_t>(active_histogram_.size()));
}

int64_t RoutingTotals::MostActive() const {
  int64_t most = 0;
  for (const std::vector<int64_t>& histogram : active_histogram_) {
    for (size_t n = 0; n < histogram.size(); ++n) {
      if (histogram[n] > 0) most = std::max(most, static_cast<int64_t>(n));
    }
  }
  return most;
}

std::vector<LoadVariance> RoutingTotals::LayerLoadVariance() const {
  std::vector<LoadVariance> result;
  for (const std::vector<int64_t>& tokens : tokens_per_expert_) {
    result.push_back(ComputeLoadVariance(tokens));
  }
  return result;
}

}  // namespace softmoe::trainer
