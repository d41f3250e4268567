// SPDX-License-Identifier: Apache-2.0
#include "optimized/pass_report.h"

namespace softmoe::optimized {
namespace {

int64_t LayerCounts(int64_t num_experts) { return 3 * num_experts + 3; }

}  // namespace

PassReport::PassReport(int64_t num_layers, int64_t num_experts)
    : num_layers_(num_layers),
      num_experts_(num_experts),
      counts_(num_layers * LayerCounts(num_experts)),
      sums_(num_layers * kLayerSums + 1) {}

LayerReport PassReport::Layer(int64_t layer) const {
  const int64_t e = num_experts_;
  int64_t* counts = counts_.data() + layer * LayerCounts(e);
  double* sums = sums_.data() + layer * kLayerSums;
  return {.tokens_per_expert = counts,
          .balance_counts = counts + e,
          .active_histogram = counts + 2 * e,
          .tokens_below_cutoff = counts + 3 * e + 1,
          .bad_score = counts + 3 * e + 2,
          .load_balance_loss = sums,
          .z_loss = sums + 1,
          .d_mean_active = sums + 2};
}

StepStats PassReport::Read(int64_t num_tokens) const {
  StepStats stats;
  stats.num_tokens = num_tokens;
  stats.loss_sum = *loss_sum();
  stats.layers.reserve(static_cast<size_t>(num_layers_));
  for (int64_t l = 0; l < num_layers_; ++l) {
    const LayerReport layer = Layer(l);
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
    gradients.push_back(*Layer(l).d_mean_active);
  }
  return gradients;
}

std::span<const int64_t> PassReport::balance_counts(int64_t layer) const {
  return {Layer(layer).balance_counts, static_cast<size_t>(num_experts_)};
}

}  // namespace softmoe::optimized
