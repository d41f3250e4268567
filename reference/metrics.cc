// SPDX-License-Identifier: Apache-2.0
#include "reference/metrics.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"

namespace softmoe::reference {

double MeanActiveExperts(const std::vector<BoolMatrix>& layers) {
  int64_t active = 0;
  int64_t tokens = 0;
  for (const BoolMatrix& layer : layers) {
    SOFTMOE_CHECK(layer.rows() == layers[0].rows()) << layer.rows();
    active += layer.count();
    tokens += layer.rows();
  }
  SOFTMOE_CHECK(tokens > 0) << "no tokens to average over";
  return static_cast<double>(active) / static_cast<double>(tokens);
}

double TrainActiveExperts(const std::vector<double>& active_experts_per_step) {
  SOFTMOE_CHECK(!active_experts_per_step.empty()) << "no steps to average over";
  double sum = 0;
  for (double active_experts : active_experts_per_step) sum += active_experts;
  return sum / static_cast<double>(active_experts_per_step.size());
}

double ZeroActiveFraction(const std::vector<Matrix>& soft_weights,
                          const std::vector<double>& cutoffs) {
  SOFTMOE_CHECK(soft_weights.size() == cutoffs.size())
      << soft_weights.size() << " layers, " << cutoffs.size() << " cutoffs";
  int64_t without = 0;
  int64_t tokens = 0;
  for (size_t layer = 0; layer < soft_weights.size(); ++layer) {
    SOFTMOE_CHECK(soft_weights[layer].rows() == soft_weights[0].rows())
        << soft_weights[layer].rows();
    for (Eigen::Index t = 0; t < soft_weights[layer].rows(); ++t) {
      if (!(soft_weights[layer].row(t).maxCoeff() > cutoffs[layer])) ++without;
    }
    tokens += soft_weights[layer].rows();
  }
  SOFTMOE_CHECK(tokens > 0) << "no tokens to average over";
  return static_cast<double>(without) / static_cast<double>(tokens);
}

std::vector<int64_t> TokensPerExpert(const BoolMatrix& active) {
  std::vector<int64_t> counts;
  for (Eigen::Index e = 0; e < active.cols(); ++e) {
    counts.push_back(active.col(e).count());
  }
  return counts;
}

LoadVariance LoadVarianceOf(const std::vector<int64_t>& tokens_per_expert) {
  SOFTMOE_CHECK(!tokens_per_expert.empty()) << "no experts";
  const double num_experts = static_cast<double>(tokens_per_expert.size());
  double mean = 0;
  for (int64_t tokens : tokens_per_expert) mean += static_cast<double>(tokens);
  mean /= num_experts;
  if (mean == 0) return {};
  double variance = 0;
  for (int64_t tokens : tokens_per_expert) {
    const double deviation = static_cast<double>(tokens) - mean;
    variance += deviation * deviation;
  }
  variance /= num_experts;
  return {.relative = variance / (mean * mean),
          .cv = std::sqrt(variance) / mean,
          .var_over_mean = variance / mean};
}

LoadVariance MeanLoadVariance(const std::vector<LoadVariance>& layers) {
  SOFTMOE_CHECK(!layers.empty()) << "no layers to average over";
  const double num_layers = static_cast<double>(layers.size());
  LoadVariance mean;
  for (const LoadVariance& layer : layers) {
    mean.relative += layer.relative / num_layers;
    mean.cv += layer.cv / num_layers;
    mean.var_over_mean += layer.var_over_mean / num_layers;
  }
  return mean;
}

double LoadEntropy(const std::vector<int64_t>& tokens_per_expert) {
  SOFTMOE_CHECK(!tokens_per_expert.empty()) << "no experts";
  double total = 0;
  for (int64_t tokens : tokens_per_expert) total += static_cast<double>(tokens);
  double entropy = 0;
  for (int64_t tokens : tokens_per_expert) {
    if (tokens == 0) continue;
    const double fraction = static_cast<double>(tokens) / total;
    entropy -= fraction * std::log(fraction);
  }
  return entropy;
}

double RelativeLoadEntropy(const std::vector<int64_t>& tokens_per_expert) {
  const double entropy = LoadEntropy(tokens_per_expert);
  if (tokens_per_expert.size() == 1) return tokens_per_expert[0] > 0 ? 1 : 0;
  return entropy / std::log(static_cast<double>(tokens_per_expert.size()));
}

int64_t DeadExperts(const std::vector<int64_t>& tokens_per_expert) {
  return std::count(tokens_per_expert.begin(), tokens_per_expert.end(), 0);
}

double AtCapFraction(const Matrix& soft_weights, double cutoff,
                     int64_t max_active) {
  SOFTMOE_CHECK(soft_weights.rows() > 0) << "no tokens to average over";
  int64_t at_cap = 0;
  for (Eigen::Index t = 0; t < soft_weights.rows(); ++t) {
    if ((soft_weights.row(t).array() > cutoff).count() >= max_active) ++at_cap;
  }
  return static_cast<double>(at_cap) / static_cast<double>(soft_weights.rows());
}

double TruncatedMass(const Matrix& soft_weights, const BoolMatrix& active) {
  SOFTMOE_CHECK(active.rows() == soft_weights.rows() &&
                active.cols() == soft_weights.cols());
  SOFTMOE_CHECK(soft_weights.rows() > 0) << "no tokens to average over";
  double mass = 0;
  for (Eigen::Index t = 0; t < soft_weights.rows(); ++t) {
    for (Eigen::Index e = 0; e < soft_weights.cols(); ++e) {
      if (!active(t, e)) mass += soft_weights(t, e);
    }
  }
  return mass / static_cast<double>(soft_weights.rows());
}

double ActiveParameters(const ModelConfig& model, double active_experts) {
  const int64_t d = model.d_model;
  const int64_t attention = 4 * d * d;  // q, k, v and output
  const int64_t router = d * model.num_experts;
  const int64_t norms = 2 * d;  // before attention, before MoE
  const int64_t embedding_and_head = 2 * model.vocab_size * d;
  const int64_t always =
      embedding_and_head + model.num_layers * (attention + router + norms) + d;
  const int64_t expert = 3 * d * model.d_ffn;  // gate, up, down
  return static_cast<double>(always) +
         static_cast<double>(model.num_layers * expert) * active_experts;
}

}  // namespace softmoe::reference
