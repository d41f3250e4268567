// SPDX-License-Identifier: Apache-2.0
#include "optimized/pass_report.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

constexpr int64_t kLayerSums = 3;

int64_t LayerCounts(int64_t num_experts) { return 3 * num_experts + 3; }

// The part of a layer in all counts and sums.
template <typename Report, typename Count, typename Sum>
Report Part(int64_t layer, int64_t num_experts, Count* counts, Sum* sums) {
  const int64_t e = num_experts;
  counts += layer * LayerCounts(e);
  sums += layer * kLayerSums;
  return {.tokens_per_expert = counts,
          .balance_counts = counts + e,
          .active_histogram = counts + 2 * e,
          .tokens_below_cutoff = counts + 3 * e + 1,
          .bad_score = counts + 3 * e + 2,
          .load_balance_loss = sums,
          .z_loss = sums + 1,
          .d_mean_active = sums + 2};
}

}  // namespace

PassReport::PassReport(int64_t num_layers, int64_t num_experts)
    : num_layers_(num_layers),
      num_experts_(num_experts),
      counts_(num_layers * LayerCounts(num_experts)),
      sums_(num_layers * kLayerSums + 1) {}

LayerReport PassReport::Layer(int64_t layer) const {
  return Part<LayerReport>(layer, num_experts_, counts_.data(), sums_.data());
}

HostLayerReport PassReport::FetchedLayer(int64_t layer) const {
  return Part<HostLayerReport>(layer, num_experts_, host_counts_.data(),
                               host_sums_.data());
}

void PassReport::Fetch(Queue& queue) {
  host_counts_ = OnHost(queue, counts_.data(), counts_.size(), &copied_counts_);
  host_sums_ = OnHost(queue, sums_.data(), sums_.size(), &copied_sums_);
}

StepStats PassReport::Read(int64_t num_tokens) const {
  StepStats stats;
  stats.num_tokens = num_tokens;
  stats.loss_sum = host_sums_.back();
  stats.layers.reserve(static_cast<size_t>(num_layers_));
  for (int64_t l = 0; l < num_layers_; ++l) {
    const HostLayerReport layer = FetchedLayer(l);
    stats.layers.push_back(
        {.tokens_per_expert = {layer.tokens_per_expert,
                               layer.tokens_per_expert + num_experts_},
         .active_histogram = {layer.active_histogram,
                              layer.active_histogram + num_experts_ + 1},
         .tokens_below_cutoff = *layer.tokens_below_cutoff,
         .load_balance_loss = *layer.load_balance_loss,
         .z_loss = *layer.z_loss});
  }
  return stats;
}

std::vector<double> PassReport::ReadMeanActiveGradients() const {
  std::vector<double> gradients;
  for (int64_t l = 0; l < num_layers_; ++l) {
    gradients.push_back(*FetchedLayer(l).d_mean_active);
  }
  return gradients;
}

std::span<const int64_t> PassReport::balance_counts(int64_t layer) const {
  return {FetchedLayer(layer).balance_counts,
          static_cast<size_t>(num_experts_)};
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
