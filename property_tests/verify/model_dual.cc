// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/model_dual.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/errors.h"
#include "core/parameter_layout.h"
#include "property_tests/verify/backward_roundings.h"
#include "property_tests/verify/dual_functions.h"
#include "property_tests/verify/path_dual.h"
#include "reference/laplace.h"
#include "reference/noise.h"
#include "reference/rope.h"

namespace softmoe::verify {
namespace {

using PathDuals = std::vector<PathDual>;
using PathSum = reference::CompensatedSum<PathDual>;

// Row-major [rows, columns].
struct Rows {
  Rows(int64_t rows, int64_t columns)
      : columns(columns), values(static_cast<size_t>(rows * columns)) {}
  PathDual* operator[](int64_t row) { return &values[row * columns]; }
  const PathDual* operator[](int64_t row) const {
    return &values[row * columns];
  }
  int64_t count() const {
    return static_cast<int64_t>(values.size()) / columns;
  }

  int64_t columns;
  PathDuals values;
};

// x W, W [x.columns, columns] at `weight`.
Rows Times(const Rows& x, const PathDual* weight, int64_t columns) {
  Rows y(x.count(), columns);
  for (int64_t t = 0; t < x.count(); ++t) {
    for (int64_t j = 0; j < columns; ++j) {
      y[t][j] = Dot(x[t], 1, weight + j, columns, x.columns);
    }
  }
  return y;
}

Rows Normalized(const Rows& x, const PathDual* weight, double epsilon) {
  Rows y(x.count(), x.columns);
  for (int64_t t = 0; t < x.count(); ++t) {
    std::ranges::copy(RmsNormOf(x[t], weight, PathDual(epsilon), x.columns),
                      y[t]);
  }
  return y;
}

// Not the form without overflow: see the header.
PathDual Silu(const PathDual& z) {
  const PathDual e = exp(z);
  return z * (e / (1 + e));
}

PathDuals LapSumWeights(const PathDuals& scores, const PathDual& k,
                        double temperature) {
  LapSumOf<PathDual> lapsum(scores, k, temperature);
  SOFTMOE_CHECK(!lapsum.root.balanced)
      << "k_l is a whole number: RelativeDistance of the reference is another";
  double error = 0;
  for (const PathDual& u : lapsum.arguments) {
    error = std::max(error, u.value().error);
  }
  PathDuals weights;
  for (PathDual& u : lapsum.arguments) {
    u.dual.value.error = 5 * error;  // the header says why
    weights.push_back(reference::LaplaceCdfOf(u));
  }
  return weights;
}

class DualModel {
 public:
  DualModel(const ModelPoint& at, const reference::Vector& direction)
      : at_(at),
        config_(at.config),
        model_(at.config.model),
        layout_(at.config),
        roundings_(BackwardRoundings(at.config.model, num_tokens())) {
    SOFTMOE_CHECK(at.parameters.size() == layout_.total &&
                  direction.size() == layout_.total)
        << at.parameters.size() << " parameters, " << direction.size()
        << " elements of the direction";
    for (int64_t i = 0; i < layout_.total; ++i) {
      parameters_.emplace_back(at.parameters[i], direction[i]);
    }
  }

  ObjectiveSlope Run() {
    const PathDuals mean_active = Allocations();
    Rows hidden(num_tokens(), d());
    for (int64_t t = 0; t < num_tokens(); ++t) {
      const PathDual* row =
          &parameters_[layout_.embedding + at_.group.inputs[t] * d()];
      std::copy(row, row + d(), hidden[t]);
    }
    CrossStream(0, hidden);
    for (int64_t l = 0; l < model_.num_layers; ++l) {
      AddAttention(l, hidden);
      CrossStream(2 * l + 1, hidden);
      AddMoe(l, mean_active[l], hidden);
      CrossStream(2 * l + 2, hidden);
    }
    const reference::GroupResult& found = at_.found.result;
    const PathDual loss =
        Cross("loss", LossSum(hidden), found.loss_sum, at_.loss_scale);
    const PathDual objective =
        at_.loss_scale * loss + at_.group_scale * auxiliary_.Get();
    // The last products and sums of the slope are made here alone.
    return {objective.dual.value, objective.dual.slope.value,
            error_ + objective.dual.slope.error};
  }

 private:
  // From one stage to the next: `gradient` is the reference's.
  PathDual Cross(const char* what, const PathDual& y, double value,
                 double gradient) {
    // Both err by no more than the bound.
    SOFTMOE_CHECK(std::abs(ValueOf(y) - value) <= 2 * y.value().error)
        << "the dual numbers compute another " << what << ": " << ValueOf(y)
        << " instead of " << value << " +- " << y.value().error;
    error_ += std::abs(gradient) *
              (y.dual.slope.error + BackwardError(y, roundings_));
    return {value, y.dual.slope.value};
  }
  void CrossStream(int64_t stage, Rows& hidden) {
    for (int64_t t = 0; t < num_tokens(); ++t) {
      for (int64_t j = 0; j < d(); ++j) {
        hidden[t][j] =
            Cross("hidden state", hidden[t][j], at_.found.stream[stage](t, j),
                  at_.found.d_stream[stage](t, j));
      }
    }
  }

  int64_t d() const { return model_.d_model; }
  int64_t num_tokens() const {
    return static_cast<int64_t>(at_.group.inputs.size());
  }

  // k_l of every layer.
  PathDuals Allocations() {
    const int64_t num_layers = model_.num_layers;
    const double layers = static_cast<double>(num_layers);
    const double k = config_.router.mean_active_experts;
    PathDuals mean_active(static_cast<size_t>(num_layers), k);
    if (config_.router.kind != RouterKind::kSoftLearned) return mean_active;
    const auto logits = parameters_.begin() + layout_.budget_logits;
    const PathDuals shares =
        SoftmaxOf(PathDuals(logits, logits + num_layers)).weights;
    for (int64_t l = 0; l < num_layers; ++l) {
      mean_active[l] = Cross("k_l", 1 + (k * layers - layers) * shares[l],
                             at_.found.result.layers[l].allocation.mean_active,
                             at_.found.d_mean_active[l]);
    }
    return mean_active;
  }

  PathDual LossSum(const Rows& hidden) const {
    const Rows head_input = Normalized(hidden, &parameters_[layout_.final_norm],
                                       model_.norm_epsilon);
    PathSum losses;
    for (int64_t t = 0; t < num_tokens(); ++t) {
      PathDuals logits;
      for (int64_t w = 0; w < model_.vocab_size; ++w) {
        logits.push_back(Dot(head_input[t], 1,
                             &parameters_[layout_.head_weight + w * d()], 1,
                             d()));
      }
      losses.Add(SoftmaxOf(logits).log_sum_exp - logits[at_.group.targets[t]]);
    }
    return losses.Get();
  }

  // hidden += Attention(RMSNorm(hidden)) W_o.
  void AddAttention(int64_t l, Rows& hidden) const {
    const LayerOffsets& offsets = layout_.layers[l];
    Rows qkv = Times(Normalized(hidden, &parameters_[offsets.attention_norm],
                                model_.norm_epsilon),
                     &parameters_[offsets.qkv_weight], 3 * d());
    Rotate(qkv);
    Add(Times(Attention(qkv), &parameters_[offsets.output_weight], d()),
        hidden);
  }

  // hidden += Moe(RMSNorm(hidden)).
  void AddMoe(int64_t l, const PathDual& mean_active, Rows& hidden) {
    Add(Moe(l, mean_active,
            Normalized(hidden, &parameters_[layout_.layers[l].moe_norm],
                       model_.norm_epsilon)),
        hidden);
  }

  static void Add(const Rows& update, Rows& hidden) {
    for (size_t i = 0; i < hidden.values.size(); ++i) {
      hidden.values[i] += update.values[i];
    }
  }

  // Pairs (i, i + head_dim/2) of q and k; positions restart per sequence.
  void Rotate(Rows& qkv) const {
    const int64_t dim = d() / model_.num_heads;
    for (int64_t t = 0; t < num_tokens(); ++t) {
      for (int64_t head = 0; head < 2 * d(); head += dim) {
        for (int64_t i = 0; i < dim / 2; ++i) {
          const double angle = reference::RopeAngle(t % model_.sequence_length,
                                                    i, dim, model_.rope_base);
          PathDual& first = qkv[t][head + i];
          PathDual& second = qkv[t][head + dim / 2 + i];
          const PathDual x = first, y = second;
          first = x * std::cos(angle) - y * std::sin(angle);
          second = x * std::sin(angle) + y * std::cos(angle);
        }
      }
    }
  }

  Rows Attention(const Rows& qkv) const {
    const int64_t dim = d() / model_.num_heads;
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    Rows out(num_tokens(), d());
    for (int64_t t = 0; t < num_tokens(); ++t) {
      const int64_t first = t - t % model_.sequence_length;
      for (int64_t column = 0; column < d(); column += dim) {
        PathDuals scores;
        for (int64_t key = first; key <= t; ++key) {
          scores.push_back(
              scale * Dot(qkv[t] + column, 1, qkv[key] + d() + column, 1, dim));
        }
        const PathDuals weights = SoftmaxOf(scores).weights;
        for (int64_t j = column; j < column + dim; ++j) {
          out[t][j] = Dot(weights.data(), 1, qkv[first] + 2 * d() + j, 3 * d(),
                          t - first + 1);
        }
      }
    }
    return out;
  }

  // The scores of every token, as routed.
  std::vector<PathDuals> Scores(int64_t l, Rows x) const {
    reference::RouterNoise noise;
    noise.kind = at_.routing.noise ? config_.router.noise : NoiseKind::kNone;
    noise.amplitude = config_.router.noise_amplitude;
    noise.seed = static_cast<uint64_t>(config_.training.seed);
    noise.step = static_cast<uint32_t>(at_.routing.step);
    noise.layer = static_cast<uint32_t>(l);
    const int64_t experts = model_.num_experts;
    if (noise.kind == NoiseKind::kInputJitter) {
      const reference::Matrix factors = reference::JitterFactors(
          noise, at_.group.first_token, num_tokens(), d());
      for (int64_t t = 0; t < num_tokens(); ++t) {
        for (int64_t j = 0; j < d(); ++j) x[t][j] = x[t][j] * factors(t, j);
      }
    }
    Rows scores =
        Times(x, &parameters_[layout_.layers[l].router_weight], experts);
    if (noise.kind == NoiseKind::kLogitGauss) {
      const reference::Matrix draws = reference::GaussDraws(
          noise, at_.group.first_token, num_tokens(), experts);
      for (int64_t t = 0; t < num_tokens(); ++t) {
        for (int64_t e = 0; e < experts; ++e) {
          scores[t][e] += noise.amplitude * draws(t, e);
        }
      }
    }
    std::vector<PathDuals> rows;
    for (int64_t t = 0; t < num_tokens(); ++t) {
      rows.emplace_back(scores[t], scores[t] + experts);
    }
    return rows;
  }

  Rows Moe(int64_t l, const PathDual& mean_active, const Rows& x) {
    const reference::LayerRouting& chosen = at_.found.result.layers[l];
    const std::vector<PathDuals> scores = Scores(l, x);
    Auxiliary(scores, Frozen(mean_active), chosen);
    Rows out(num_tokens(), d());
    for (int64_t t = 0; t < num_tokens(); ++t) {
      const PathDuals gates =
          config_.router.kind == RouterKind::kSparse
              ? SoftmaxOf(scores[t]).weights
              : LapSumWeights(scores[t], mean_active, at_.routing.temperature);
      std::vector<PathSum> sums(static_cast<size_t>(d()));
      for (int64_t e = 0; e < model_.num_experts; ++e) {
        if (!chosen.routing.active(t, e)) continue;
        const PathDuals y = Expert(l, e, x[t]);
        for (int64_t j = 0; j < d(); ++j) sums[j].Add(gates[e] * y[j]);
      }
      for (int64_t j = 0; j < d(); ++j) out[t][j] = sums[j].Get();
    }
    return out;
  }

  // coeff E sum_e f_e mean_t basis_te, and coeff mean_t lse_t^2.
  void Auxiliary(const std::vector<PathDuals>& scores, const PathDual& frozen_k,
                 const reference::LayerRouting& found) {
    const bool megatron =
        config_.router.kind == RouterKind::kSparse ||
        config_.router.load_balance == LoadBalanceKind::kMegatron;
    std::vector<PathSum> sums(scores.front().size());
    PathSum z_sum;
    for (const PathDuals& row : scores) {
      const SoftmaxOf softmax(row);
      z_sum.Add(softmax.log_sum_exp * softmax.log_sum_exp);
      const PathDuals basis =
          megatron ? softmax.weights
                   : LapSumWeights(row, frozen_k, at_.routing.temperature);
      for (size_t e = 0; e < basis.size(); ++e) sums[e].Add(basis[e]);
    }
    const double tokens = static_cast<double>(num_tokens());
    PathSum balance;
    for (size_t e = 0; e < sums.size(); ++e) {
      const PathDual mean = sums[e].Get() / tokens;
      balance.Add(found.balance.fractions[e] *
                  (megatron ? mean : mean / frozen_k));
    }
    auxiliary_.Add(Cross("load balance",
                         config_.router.aux_loss_coeff *
                             static_cast<double>(model_.num_experts) *
                             balance.Get(),
                         found.balance.loss, at_.group_scale));
    auxiliary_.Add(Cross("z loss",
                         config_.router.z_loss_coeff * z_sum.Get() / tokens,
                         found.z_loss, at_.group_scale));
  }

  PathDuals Expert(int64_t l, int64_t e, const PathDual* x) const {
    const int64_t f = model_.d_ffn;
    const PathDual* gate =
        &parameters_[layout_.layers[l].gate_up_weight + e * d() * 2 * f];
    const PathDual* down =
        &parameters_[layout_.layers[l].down_weight + e * f * d()];
    PathDuals activation, y;
    for (int64_t k = 0; k < f; ++k) {
      activation.push_back(Silu(Dot(x, 1, gate + k, 2 * f, d())) *
                           Dot(x, 1, gate + f + k, 2 * f, d()));
    }
    for (int64_t j = 0; j < d(); ++j) {
      y.push_back(Dot(activation.data(), 1, down + j, d(), f));
    }
    return y;
  }

  const ModelPoint& at_;
  const Config& config_;
  const ModelConfig& model_;
  const ParameterLayout layout_;
  const double roundings_;
  PathDuals parameters_;
  PathSum auxiliary_;
  double error_ = 0;
};

}  // namespace

ObjectiveSlope SlopeAlong(const ModelPoint& at,
                          const reference::Vector& direction) {
  return DualModel(at, direction).Run();
}

}  // namespace softmoe::verify
