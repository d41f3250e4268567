// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/routing_trace.h"

#include <algorithm>
#include <system_error>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/hdf5/hdf5_envelope.h"
#include "core/hdf5/hdf5_file.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {

void RequireReplaceableTrace(const std::filesystem::path& path) {
  std::error_code unreadable;  // then opening reports it
  if (!std::filesystem::is_regular_file(path, unreadable) ||
      SaysKind(path, RoutingTraceKind().name)) {
    return;
  }
  throw ConfigError(path.string() +
                    ": already exists and is no trace of routers; give another "
                    "--out, or move it away");
}

RoutingTrace::RoutingTrace(const Config& config, int64_t num_sequences)
    : num_layers_(config.model.num_layers),
      num_experts_(config.model.num_experts),
      num_sequences_(num_sequences),
      length_(config.model.sequence_length),
      scores_(static_cast<size_t>(num_layers_ * num_sequences * length_ *
                                  num_experts_)),
      soft_weights_(scores_.size()),
      active_(scores_.size()) {}

void RoutingTrace::Add(std::span<const optimized::RoutingView> layers) {
  const int64_t all_tokens = num_sequences_ * length_;
  const auto pairs = static_cast<int64_t>(layers[0].scores.size());
  const int64_t tokens = pairs / num_experts_;
  SOFTMOE_CHECK(std::ssize(layers) == num_layers_ &&
                added_ + tokens <= all_tokens)
      << added_ << " + " << tokens << " tokens of " << all_tokens;
  for (int64_t l = 0; l < num_layers_; ++l) {
    const optimized::RoutingView& layer = layers[l];
    const int64_t first = (l * all_tokens + added_) * num_experts_;
    std::ranges::copy(layer.scores, scores_.begin() + first);
    std::ranges::copy(layer.soft_weights, soft_weights_.begin() + first);
    for (int64_t i = 0; i < std::ssize(layer.selected); ++i) {
      if (layer.selected[i] < 0) continue;
      const int64_t token = i / layer.max_active;
      active_[first + token * num_experts_ + layer.selected[i]] = 1;
    }
  }
  added_ += tokens;
}

void RoutingTrace::Write(
    const std::filesystem::path& path, const TracedModel& model,
    std::span<const int32_t> tokens, std::span<const int32_t> targets,
    std::span<const optimized::LayerAllocation> allocations) const {
  SOFTMOE_CHECK(added_ == num_sequences_ * length_)
      << added_ << " tokens of " << num_sequences_ * length_;
  Hdf5Writer file(path, RoutingTraceKind());
  file.WriteAttribute("/", "config", ConfigToToml(model.identity.config));
  WriteIdentity(model.identity, "/", file);
  file.WriteAttribute("/", "code_version", CodeVersion());
  file.WriteAttribute("/", "step", model.step);
  file.WriteAttribute("/", metrics::kTau.name, model.tau);
  file.WriteAttribute("/", metrics::kTemperature.name, model.temperature);
  file.WriteDataset<int32_t>("/tokens", tokens, {num_sequences_, length_});
  file.WriteDataset<int32_t>("/targets", targets, {num_sequences_, length_});
  const std::vector<int64_t> shape = {num_layers_, added_, num_experts_};
  file.WriteDataset<float>("/scores", scores_, shape);
  file.WriteDataset<float>("/soft_weights", soft_weights_, shape);
  file.WriteDataset<uint8_t>("/active", active_, shape);
  std::vector<double> mean_active, cutoff;
  std::vector<int64_t> max_active;
  for (const optimized::LayerAllocation& layer : allocations) {
    mean_active.push_back(layer.mean_active);
    cutoff.push_back(layer.cutoff);
    max_active.push_back(layer.max_active);
  }
  file.WriteDataset("/mean_active", mean_active);
  file.WriteDataset("/cutoff", cutoff);
  file.WriteDataset("/max_active", max_active);
  file.Commit();
}

}  // namespace softmoe::trainer
