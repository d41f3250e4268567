// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/model_dual.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "property_tests/verify/gradients/path_dual.h"
#include "reference/budget.h"
#include "reference/decoder_block.h"
#include "reference/embedding.h"
#include "reference/lapsum.h"
#include "reference/lm_head.h"
#include "reference/load_balance.h"
#include "reference/moe_layer.h"
#include "reference/noise.h"
#include "reference/router.h"

namespace softmoe::verify {
namespace {

// D of path_dual.h: the largest number of roundings that the reference's
// backward pass makes on any path through one stage of the model (model_dual.h)
// and into a parameter, not counting those of the values that it reads.
double BackwardRoundings(const ModelConfig& m, int64_t num_tokens) {
  const double layers = static_cast<double>(m.num_layers);
  const double d = static_cast<double>(m.d_model);
  const double f = static_cast<double>(m.d_ffn);
  const double experts = static_cast<double>(m.num_experts);
  const double head_dim = d / static_cast<double>(m.num_heads);
  const double length = static_cast<double>(m.sequence_length);
  const double tokens = static_cast<double>(num_tokens);

  // A product with a sum of n terms makes n roundings: 1 of the product, n - 1
  // of the additions. Head: p (a quotient), p - 1, times loss_scale; d_logits
  // W.
  const double head = 3 + static_cast<double>(m.vocab_size);
  // v = d_out w, n = r x twice, v n, its mean (d), times n, v - that, times r;
  // r, a quotient, thrice.
  const double norm = d + 10;
  // d_out W_o^T; d_out v^T; the row sums of d_w w, the difference, times w, w
  // itself a quotient twice; times k, the scale; the rotation: a product, a
  // sum, and sine or cosine, 2; d_qkv W^T.
  const double attention =
      d + head_dim + (length + 4) + (length + 1) + 4 + 3 * d;
  // Times the gate; d_out W_down^T; times up, times SiLU' with 4 of its own;
  // d_gate_up W^T.
  const double expert = 1 + d + 6 + 2 * f;
  // q: two exponentials (2 each), the sum, the quotient; sum q v; v - g, times
  // f, an exponential (2), over T. A softmax makes fewer.
  const double lapsum = 4 + experts + 1 + experts + 1 + 1 + 2 + 1;
  // d_out . expert_out (more than the coefficients of the auxiliary losses);
  // these added and scaled; d_scores W^T; jitter.
  const double router = std::max(d, 6.0) + lapsum + 3 + experts + 1;
  // The gradients from every expert and from the router, added up.
  const double moe = std::max(expert, router) + experts + 1;
  const double half_block = std::max(attention, moe) + norm + 1;
  // A sum over tokens, of n = r x for a norm; for the budget, of d k_l, and the
  // softmax of the logits: q v, their sum, v - that, times q, which is a
  // quotient twice, times the budget.
  const double parameter = tokens + layers + 7;
  return std::max(head + norm, half_block) + parameter;
}

namespace formula = reference::formula;
using PathDuals = reference::VectorOf<PathDual>;
using PathMatrix = reference::MatrixOf<PathDual>;
using PathSum = reference::Sum<PathDual>;

PathDuals LapSumRow(const PathDuals& scores, const PathDual& k,
                    double temperature) {
  const reference::LapSumRoot<PathDual> root =
      formula::SolveLapSumRoot<PathDual>(scores, k, temperature);
  SOFTMOE_CHECK(!root.balanced)
      << "k_l is a whole number: RelativeDistance of the reference is another";
  PathDuals arguments =
      formula::LapSumArguments<PathDual>(scores, root, temperature);
  double error = 0;
  for (const PathDual& u : arguments) {
    error = std::max(error, u.value().error);
  }
  for (PathDual& u : arguments) {
    u.dual.value.error = 5 * error;  // the header says why
  }
  return formula::LapSumWeights<PathDual>(arguments);
}

PathMatrix LapSumRows(const PathMatrix& scores, const PathDual& k,
                      double temperature) {
  PathMatrix weights(scores.rows(), scores.cols());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    weights.row(t) = LapSumRow(scores.row(t), k, temperature);
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
    PathMatrix hidden = formula::EmbeddingForward<PathDual>(
        at_.group.inputs,
        Parameters(layout_.embedding, model_.vocab_size, d()));
    CrossStream(0, hidden);
    for (int64_t l = 0; l < model_.num_layers; ++l) {
      hidden = AddAttention(l, hidden);
      CrossStream(2 * l + 1, hidden);
      hidden = AddMoe(l, mean_active[l], hidden);
      CrossStream(2 * l + 2, hidden);
    }
    const reference::GroupResult& found = at_.found.result;
    const PathDual loss =
        Cross("loss", LossSum(hidden), found.loss_sum, at_.loss_scale);
    const PathDual objective =
        at_.loss_scale * loss + at_.group_scale * auxiliary_.Get();
    // The last products and sums of the slope are made only here.
    return {objective.dual.value, objective.dual.slope.value,
            error_ + objective.dual.slope.error};
  }

 private:
  // Goes from one stage to the next: `gradient` is the reference's.
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
  void CrossStream(int64_t stage, PathMatrix& hidden) {
    for (int64_t t = 0; t < num_tokens(); ++t) {
      for (int64_t j = 0; j < d(); ++j) {
        hidden(t, j) =
            Cross("hidden state", hidden(t, j), at_.found.stream[stage](t, j),
                  at_.found.d_stream[stage](t, j));
      }
    }
  }

  int64_t d() const { return model_.d_model; }
  int64_t num_tokens() const {
    return static_cast<int64_t>(at_.group.inputs.size());
  }

  // The [rows, columns] parameters at `offset`.
  PathMatrix Parameters(int64_t offset, int64_t rows, int64_t columns) const {
    return Eigen::Map<const PathMatrix>(parameters_.data() + offset, rows,
                                        columns);
  }

  // k_l of every layer.
  PathDuals Allocations() {
    const int64_t num_layers = model_.num_layers;
    const double k = config_.router.mean_active_experts;
    PathDuals mean_active = PathDuals::Constant(num_layers, k);
    if (config_.router.kind != RouterKind::kSoftLearned) return mean_active;
    mean_active = formula::AllocateBudget<PathDual>(
                      k * static_cast<double>(num_layers),
                      Parameters(layout_.budget_logits, num_layers, 1))
                      .allocation;
    for (int64_t l = 0; l < num_layers; ++l) {
      mean_active[l] = Cross("k_l", mean_active[l],
                             at_.found.result.layers[l].allocation.mean_active,
                             at_.found.d_mean_active[l]);
    }
    return mean_active;
  }

  PathDual LossSum(const PathMatrix& hidden) const {
    const PathMatrix head_input = formula::RmsNormForward<PathDual>(
        hidden, Parameters(layout_.final_norm, d(), 1), model_.norm_epsilon);
    const PathMatrix logits = formula::LmHeadLogits<PathDual>(
        head_input, Parameters(layout_.head_weight, model_.vocab_size, d()));
    PathSum losses;
    for (const PathDual& loss :
         formula::TokenLosses<PathDual>(logits, at_.group.targets)) {
      losses.Add(loss);
    }
    return losses.Get();
  }

  // hidden + Attention(RMSNorm(hidden)) W_o
  PathMatrix AddAttention(int64_t l, const PathMatrix& hidden) const {
    const LayerOffsets& offsets = layout_.layers[l];
    return formula::AttentionHalf<PathDual>(
               at_.group.num_sequences, model_.num_heads, model_.rope_base,
               model_.norm_epsilon, Parameters(offsets.attention_norm, d(), 1),
               Parameters(offsets.qkv_weight, d(), 3 * d()),
               Parameters(offsets.output_weight, d(), d()), hidden)
        .middle;
  }

  // hidden + Moe(RMSNorm(hidden))
  PathMatrix AddMoe(int64_t l, const PathDual& mean_active,
                    const PathMatrix& hidden) {
    const LayerOffsets& offsets = layout_.layers[l];
    return formula::Plus<PathDual>(
        hidden, Moe(l, mean_active,
                    formula::RmsNormForward<PathDual>(
                        hidden, Parameters(offsets.moe_norm, d(), 1),
                        model_.norm_epsilon)));
  }

  // The scores of every token, as they are routed.
  PathMatrix Scores(int64_t l, const PathMatrix& x) const {
    reference::RouterNoise noise;
    noise.kind = at_.routing.noise ? config_.router.noise : NoiseKind::kNone;
    noise.amplitude = config_.router.noise_amplitude;
    noise.seed = static_cast<uint64_t>(config_.training.seed);
    noise.step = static_cast<uint32_t>(at_.routing.step);
    noise.layer = static_cast<uint32_t>(l);
    const PathMatrix router_input =
        formula::NoisyRouterInput<PathDual>(noise, at_.group.first_token, x);
    return formula::NoisyScores<PathDual>(
        noise, at_.group.first_token,
        formula::Multiply<PathDual>(
            router_input, Parameters(layout_.layers[l].router_weight, d(),
                                     model_.num_experts)));
  }

  PathMatrix Moe(int64_t l, const PathDual& mean_active, const PathMatrix& x) {
    const reference::LayerRouting& chosen = at_.found.result.layers[l];
    const PathMatrix scores = Scores(l, x);
    Auxiliary(scores, Frozen(mean_active), chosen);
    const PathMatrix soft_weights =
        config_.router.kind == RouterKind::kSparse
            ? formula::SoftmaxRows<PathDual>(scores)
            : LapSumRows(scores, mean_active, at_.routing.temperature);
    return formula::MixExperts<PathDual>(
        chosen.routing.active,
        formula::Gates<PathDual>(chosen.routing.active, soft_weights),
        Experts(l), x);
  }

  reference::ExpertWeightsOf<PathDual> Experts(int64_t l) const {
    const LayerOffsets& offsets = layout_.layers[l];
    const int64_t f = model_.d_ffn;
    reference::ExpertWeightsOf<PathDual> weights;
    for (int64_t e = 0; e < model_.num_experts; ++e) {
      weights.gate_up_weight.push_back(
          Parameters(offsets.gate_up_weight + e * d() * 2 * f, d(), 2 * f));
      weights.down_weight.push_back(
          Parameters(offsets.down_weight + e * f * d(), f, d()));
    }
    return weights;
  }

  // The load balance and the z loss.
  void Auxiliary(const PathMatrix& scores, const PathDual& frozen_k,
                 const reference::LayerRouting& found) {
    const bool megatron =
        config_.router.kind == RouterKind::kSparse ||
        config_.router.load_balance == LoadBalanceKind::kMegatron;
    const PathDuals probabilities =
        megatron ? formula::MegatronProbabilities<PathDual>(
                       formula::SoftmaxRows<PathDual>(scores))
                 : formula::SoftProbabilities<PathDual>(
                       LapSumRows(scores, frozen_k, at_.routing.temperature),
                       frozen_k);
    auxiliary_.Add(Cross(
        "load balance",
        formula::BalanceLoss<PathDual>(config_.router.aux_loss_coeff,
                                       found.balance.fractions, probabilities),
        found.balance.loss, at_.group_scale));
    auxiliary_.Add(Cross(
        "z loss", formula::ZLoss<PathDual>(config_.router.z_loss_coeff, scores),
        found.z_loss, at_.group_scale));
  }

  const ModelPoint& at_;
  const Config& config_;
  const ModelConfig& model_;
  const ParameterLayout layout_;
  const double roundings_;
  std::vector<PathDual> parameters_;
  PathSum auxiliary_;
  double error_ = 0;
};

}  // namespace

ObjectiveSlope SlopeAlong(const ModelPoint& at,
                          const reference::Vector& direction) {
  return DualModel(at, direction).Run();
}

}  // namespace softmoe::verify
