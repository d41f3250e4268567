// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/cost_model.h"

#include "core/config/parameter_layout.h"
#include "optimized/allocation.h"

namespace softmoe::experiments {
namespace {

constexpr double kForwardPasses = 3;  // in a step: 1, and 2 for the backward
constexpr double kFp32 = 4;           // bytes

}  // namespace

ForwardFlops CountForwardFlops(const ModelConfig& m, double active_experts) {
  const double layers = m.num_layers, d = m.d_model;
  ForwardFlops flops;
  flops.attention_projections = layers * 2 * 4 * d * d;
  flops.attention = layers * 4 * d * (m.sequence_length + 1) / 2.0;
  flops.router = layers * 2 * d * m.num_experts;
  flops.experts = layers * active_experts * 2 * 3 * d * m.d_ffn;
  flops.head = 2 * d * m.vocab_size;
  return flops;
}

double ActiveParameters(const ModelConfig& m, double active_experts) {
  const double d = m.d_model;
  const double per_layer = 2 * d + 4 * d * d + d * m.num_experts;
  return 2 * d * m.vocab_size + d + m.num_layers * per_layer +
         m.num_layers * active_experts * 3 * d * m.d_ffn;
}

double CpuActivationBytes(const Config& config) {
  const ModelConfig& m = config.model;
  const double d = static_cast<double>(m.d_model);
  const double f = static_cast<double>(m.d_ffn);
  const double e = static_cast<double>(m.num_experts);
  const double layers = static_cast<double>(m.num_layers);
  const double jitter = config.router.noise == NoiseKind::kInputJitter ? d : 0;
  const auto caps = static_cast<double>(optimized::LargestTotalActive(config));
  const auto cap = static_cast<double>(optimized::LargestMaxActive(config));
  // Numbers per token. Every layer keeps the residuals that enter its two
  // halves, both norms' outputs, q, k, v, the attention output, scores and soft
  // weights, and gate and up of every active expert. In addition: the last
  // norm, the gradients of all of these in one layer, and the rows of its
  // experts.
  const double kept = layers * (8 * d + jitter + 2 * e) + caps * 2 * f;
  const double scratch = 2 * d + 6 * d + jitter + e + cap * (d + 3 * f);
  const int64_t tokens =
      config.training.balance_group_sequences * m.sequence_length;
  return kFp32 * static_cast<double>(tokens) * (kept + scratch);
}

double GpuFlops(const Config& config, const Cluster& cluster) {
  const bool bf16 = config.training.precision == Precision::kBf16;
  return (bf16 ? cluster.peak_flops : cluster.fp32_peak_flops) *
         cluster.assumed_mfu;
}

RunCost EstimateCost(const Config& config, double active_experts,
                     const Cluster& cluster) {
  const ModelConfig& m = config.model;
  const TrainingConfig& t = config.training;
  RunCost cost;
  cost.parameters = ParameterLayout(config).total;
  cost.active_parameters = ActiveParameters(m, active_experts);
  cost.steps = t.steps;
  cost.tokens = t.steps * t.global_batch_sequences * m.sequence_length;
  cost.train_flops = kForwardPasses *
                     CountForwardFlops(m, active_experts).total() *
                     static_cast<double>(cost.tokens);

  cost.gpu_hours = cost.train_flops / GpuFlops(config, cluster) / 3600;
  cost.hours = cost.gpu_hours / static_cast<double>(cluster.gpus);
  cost.core_hours = cost.train_flops / cluster.core_flops / 3600;
  return cost;
}

}  // namespace softmoe::experiments
