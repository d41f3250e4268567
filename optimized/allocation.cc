// SPDX-License-Identifier: Apache-2.0
#include "optimized/allocation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "optimized/step.h"

namespace softmoe::optimized {

double SpareBudget(const Config& config) {
  const double layers = static_cast<double>(config.model.num_layers);
  return config.router.mean_active_experts * layers - layers;
}

std::vector<double> BudgetShares(std::span<const float> budget_logits) {
  double largest = -HUGE_VAL;
  for (size_t l = 0; l < budget_logits.size(); ++l) {
    if (!std::isfinite(budget_logits[l])) {
      ThrowDiverged("budget logit of layer " + std::to_string(l) + " is " +
                    std::to_string(budget_logits[l]));
    }
    largest = std::max(largest, static_cast<double>(budget_logits[l]));
  }
  std::vector<double> shares(budget_logits.size());
  double sum = 0;
  for (size_t l = 0; l < shares.size(); ++l) {
    shares[l] = std::exp(static_cast<double>(budget_logits[l]) - largest);
    sum += shares[l];
  }
  for (double& share : shares) {
    share /= sum;
  }
  return shares;
}

std::vector<LayerAllocation> ComputeAllocations(
    const Config& config, std::span<const float> budget_logits, double tau) {
  const RouterConfig& router = config.router;
  const size_t num_layers = static_cast<size_t>(config.model.num_layers);
  const RouterTraits traits = TraitsOf(config);
  SOFTMOE_CHECK(budget_logits.size() ==
                (traits.learned_budget ? num_layers : 0))
      << budget_logits.size() << " budget logits";

  std::vector<double> mean_active(num_layers, router.mean_active_experts);
  if (traits.learned_budget) {
    const std::vector<double> shares = BudgetShares(budget_logits);
    for (size_t l = 0; l < num_layers; ++l) {
      mean_active[l] = 1.0 + SpareBudget(config) * shares[l];
    }
  }
  std::vector<LayerAllocation> allocations;
  allocations.reserve(num_layers);
  for (const double k : mean_active) {
    const int64_t num_experts = config.model.num_experts;
    const double cutoff =
        traits.cutoff ? tau * k / static_cast<double>(num_experts) : 0.0;
    allocations.push_back(
        {k, cutoff, MaxActive(config, k), WholeExperts(k, num_experts)});
  }
  return allocations;
}

std::vector<LayerAllocation> InitialAllocations(const Config& config,
                                                double tau) {
  std::vector<float> logits;
  if (TraitsOf(config).learned_budget) {
    logits.resize(static_cast<size_t>(config.model.num_layers));
  }
  return ComputeAllocations(config, logits, tau);
}

int64_t LargestMaxActive(const Config& config) {
  const double largest = TraitsOf(config).learned_budget
                             ? 1.0 + SpareBudget(config)
                             : config.router.mean_active_experts;
  return MaxActive(config, largest);
}

int64_t LargestTotalActive(const Config& config) {
  const int64_t num_layers = config.model.num_layers;
  const int64_t at_most = num_layers * LargestMaxActive(config);
  // ceil(x - 1e-6) < x + 1, and the k_l add up to K.
  const double budget =
      config.router.mean_active_experts * static_cast<double>(num_layers);
  const double bound = std::ceil(config.router.expansion_factor * budget);
  return std::min(at_most, static_cast<int64_t>(bound) + num_layers);
}

}  // namespace softmoe::optimized
