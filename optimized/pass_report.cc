// SPDX-License-Identifier: Apache-2.0
#include "optimized/pass_report.h"

#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

// How many sums a layer has, without d_mean_active.
constexpr int64_t kLayerSums = 3;

// A layer's part of the counts and sums of a pass.
template <typename Report, typename Count, typename Sum>
Report Part(int64_t num_layers, int64_t num_experts, int64_t layer,
            Count* counts, Sum* sums) {
  const int64_t e = num_experts;
  counts += layer * (3 * e + 3);
  Sum* layer_sums = sums + layer * kLayerSums;
  return {.tokens_per_expert = counts,
          .balance_counts = counts + e,
          .active_histogram = counts + 2 * e,
          .tokens_below_cutoff = counts + 3 * e + 1,
          .bad_score = counts + 3 * e + 2,
          .bad_value = layer_sums,
          .load_balance_loss = layer_sums + 1,
          .z_loss = layer_sums + 2,
          .d_mean_active = sums + num_layers * kLayerSums + layer};
}

}  // namespace

PassReport::PassReport(const ModelConfig& model, int64_t num_passes)
    : num_layers_(model.num_layers),
      num_experts_(model.num_experts),
      pass_counts_(ReportCounts(model)),
      pass_sums_(ReportSums(model)),
      num_passes_(num_passes),
      counts_(num_passes * pass_counts_),
      sums_(num_passes * pass_sums_) {}

LayerReport PassReport::Layer(int64_t pass, int64_t layer) const {
  return Part<LayerReport>(num_layers_, num_experts_, layer,
                           counts_.data() + pass * pass_counts_,
                           sums_.data() + pass * pass_sums_);
}

double* PassReport::loss_sum(int64_t pass) const {
  return sums_.data() + (pass + 1) * pass_sums_ - 1;
}

double* PassReport::d_mean_active(int64_t pass) const {
  return Layer(pass, 0).d_mean_active;
}

void PassReport::StartFetch(Queue& queue, int64_t num_passes) {
  host_counts_.Start(queue, counts_.data(), num_passes * pass_counts_);
  host_sums_.Start(queue, sums_.data(), num_passes * pass_sums_);
}

HostLayerReport PassReport::FetchedLayer(int64_t pass, int64_t layer) const {
  return Part<HostLayerReport>(num_layers_, num_experts_, layer,
                               host_counts_.view().data() + pass * pass_counts_,
                               host_sums_.view().data() + pass * pass_sums_);
}

StepStats PassReport::Read(int64_t pass, int64_t num_tokens) const {
  StepStats stats;
  stats.num_tokens = num_tokens;
  stats.loss_sum = host_sums_.view()[(pass + 1) * pass_sums_ - 1];
  stats.layers.reserve(static_cast<size_t>(num_layers_));
  for (int64_t l = 0; l < num_layers_; ++l) {
    const HostLayerReport layer = FetchedLayer(pass, l);
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

std::span<const int64_t> PassReport::balance_counts(int64_t pass,
                                                    int64_t layer) const {
  return {FetchedLayer(pass, layer).balance_counts,
          static_cast<size_t>(num_experts_)};
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
