// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/router_health.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"

namespace softmoe::trainer {
namespace {

// ln E is the maximum. A single expert has an even load: 1.
double RelativeLoadEntropy(double entropy, std::span<const int64_t> tokens) {
  if (tokens.size() == 1) return tokens[0] > 0 ? 1 : 0;
  return entropy / std::log(static_cast<double>(tokens.size()));
}

// The soft weights of all tokens that were not selected.
double TruncatedWeight(const optimized::RoutingView& layer,
                       int64_t num_experts) {
  const int64_t num_tokens =
      static_cast<int64_t>(layer.soft_weights.size()) / num_experts;
  double sum = 0;
  for (int64_t t = 0; t < num_tokens; ++t) {
    const int32_t* selected = layer.selected.data() + t * layer.max_active;
    const int32_t* end = selected + layer.max_active;
    for (int64_t e = 0; e < num_experts; ++e) {
      // The list holds experts in ascending order, then -1.
      if (selected != end && *selected == e) {
        ++selected;
      } else {
        sum += layer.soft_weights[t * num_experts + e];
      }
    }
  }
  return sum;
}

}  // namespace

double LoadEntropy(std::span<const int64_t> tokens_per_expert) {
  int64_t total = 0;
  for (int64_t tokens : tokens_per_expert) total += tokens;
  double entropy = 0;
  for (int64_t tokens : tokens_per_expert) {
    if (tokens == 0) continue;
    const double share =
        static_cast<double>(tokens) / static_cast<double>(total);
    entropy -= share * std::log(share);
  }
  return entropy;
}

RouterHealthTotals::RouterHealthTotals(const Config& config)
    : lapsum_(TraitsOf(config).lapsum),
      fallback_(config.router.fallback == Fallback::kTop1),
      num_experts_(config.model.num_experts),
      totals_(config.model.num_layers, num_experts_),
      max_active_(static_cast<size_t>(config.model.num_layers)),
      below_cutoff_(max_active_.size()),
      truncated_weight_(max_active_.size()) {}

void RouterHealthTotals::Add(std::span<const optimized::StepStats> groups,
                             std::span<const optimized::RoutingView> layers,
                             optimized::Communicator& communicator) {
  const size_t num_layers = max_active_.size();
  SOFTMOE_CHECK(layers.size() == num_layers) << "layers=" << layers.size();
  const int ranks = communicator.size();
  // [rank, layer] the soft weights that a group's routers did not select.
  std::vector<double> truncated(static_cast<size_t>(ranks) * num_layers);
  const size_t own = static_cast<size_t>(communicator.rank()) * num_layers;
  for (size_t l = 0; l < num_layers; ++l) {
    SOFTMOE_CHECK(max_active_[l] == 0 || max_active_[l] == layers[l].max_active)
        << "layer " << l << ": cap " << layers[l].max_active << " after "
        << max_active_[l];
    max_active_[l] = layers[l].max_active;
    if (lapsum_) truncated[own + l] = TruncatedWeight(layers[l], num_experts_);
  }
  communicator.Gather<double>(
      optimized::ShareOut(std::ssize(truncated),
                          static_cast<int64_t>(num_layers), ranks),
      truncated);
  for (size_t g = 0; g < groups.size(); ++g) {
    totals_.Add(groups[g]);
    for (size_t l = 0; l < num_layers; ++l) {
      below_cutoff_[l] += groups[g].layers[l].tokens_below_cutoff;
      truncated_weight_[l] += truncated[g * num_layers + l];
    }
  }
}

std::vector<RouterHealth> RouterHealthTotals::Get() const {
  SOFTMOE_CHECK(totals_.num_tokens() > 0) << "no tokens to average over";
  const double tokens = static_cast<double>(totals_.num_tokens());
  std::vector<RouterHealth> result;
  for (size_t l = 0; l < max_active_.size(); ++l) {
    const std::vector<int64_t>& load = totals_.tokens_per_expert()[l];
    RouterHealth health;
    health.load_entropy = LoadEntropy(load);
    health.relative_load_entropy =
        RelativeLoadEntropy(health.load_entropy, load);
    health.dead_experts = std::ranges::count(load, 0);
    // With a cap of one, tokens that the fallback served have as many experts
    // as the cap, but did not reach it by their weights.
    const int64_t given =
        fallback_ && max_active_[l] == 1 ? below_cutoff_[l] : 0;
    health.at_cap_fraction =
        static_cast<double>(totals_.active_histogram()[l][max_active_[l]] -
                            given) /
        tokens;
    health.zero_active_fraction =
        static_cast<double>(below_cutoff_[l]) / tokens;
    if (lapsum_) health.truncated_mass = truncated_weight_[l] / tokens;
    result.push_back(health);
  }
  return result;
}

}  // namespace softmoe::trainer
