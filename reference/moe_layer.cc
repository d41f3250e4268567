// SPDX-License-Identifier: Apache-2.0
#include "reference/moe_layer.h"

#include "reference/expert.h"

namespace softmoe::reference {
namespace {

using TokenIndices = std::vector<int64_t>;

// The tokens that use `expert`, in ascending order.
TokenIndices TokensOf(const BoolMatrix& active, int64_t expert) {
  TokenIndices tokens;
  for (int64_t t = 0; t < active.rows(); ++t) {
    if (active(t, expert)) tokens.push_back(t);
  }
  return tokens;
}

Matrix Gather(const Matrix& rows, const TokenIndices& tokens) {
  return rows(tokens, Eigen::all);
}

void CheckShapes(const MoeLayerWeights& weights, const Matrix& hidden) {
  const size_t num_experts = static_cast<size_t>(weights.router_weight.cols());
  SOFTMOE_CHECK(weights.router_weight.rows() == hidden.cols() &&
                weights.gate_up_weight.size() == num_experts &&
                weights.down_weight.size() == num_experts)
      << "router [" << weights.router_weight.rows() << ", " << num_experts
      << "], " << weights.gate_up_weight.size() << " and "
      << weights.down_weight.size() << " experts, d_model " << hidden.cols();
}

bool MegatronReading(const MoeLayerSettings& settings) {
  return settings.router.kind == RouterKind::kSparse ||
         settings.load_balance == LoadBalanceKind::kMegatron;
}

LoadBalance Balance(const MoeLayerSettings& settings, const Matrix& scores,
                    const RouterSaved& routing) {
  const RouterSettings& router = settings.router;
  if (!MegatronReading(settings)) {
    return SoftLoadBalance(settings.aux_loss_coeff, router.mean_active,
                           routing.soft_weights, routing.active);
  }
  const int64_t top = router.kind == RouterKind::kSparse
                          ? router.max_active
                          : BalanceTop(router.mean_active, scores.cols());
  return MegatronLoadBalance(settings.aux_loss_coeff, top, scores);
}

// d load balance / d scores [num_tokens, num_experts].
Matrix BalanceGradient(const MoeLayerSettings& settings,
                       const MoeLayerSaved& saved) {
  if (MegatronReading(settings)) {
    return MegatronLoadBalanceGradient(settings.aux_loss_coeff, saved.balance,
                                       saved.scores);
  }
  return SoftWeightsBackward(
      settings.router, saved.scores,
      SoftLoadBalanceGradient(settings.aux_loss_coeff,
                              settings.router.mean_active, saved.balance,
                              saved.scores.rows()));
}

void ReplaySelection(const BoolMatrix& active, RouterSaved* routing) {
  SOFTMOE_CHECK(active.rows() == routing->active.rows() &&
                active.cols() == routing->active.cols())
      << "replayed active set [" << active.rows() << ", " << active.cols()
      << "]";
  routing->active = active;
  routing->gates = active.select(routing->soft_weights, 0.0);
}

// The soft reading has counted the replayed active set already.
void ReplayFractions(const MoeLayerSettings& settings,
                     const RoutingReplay& replay, LoadBalance* balance) {
  if (replay.balance_fractions.size() > 0) {
    SOFTMOE_CHECK(replay.balance_fractions.size() == replay.active.cols());
    balance->fractions = replay.balance_fractions;
  } else if (settings.router.kind == RouterKind::kSparse) {
    const Vector counts =
        replay.active.cast<double>().colwise().sum().transpose();
    SOFTMOE_CHECK(counts.sum() > 0) << "replayed active set is empty";
    balance->fractions = counts / counts.sum();
  }
  balance->loss = settings.aux_loss_coeff *
                  static_cast<double>(replay.active.cols()) *
                  balance->fractions.dot(balance->probabilities);
}

}  // namespace

MoeLayerResult MoeLayerForward(const MoeLayerSettings& settings,
                               const MoeLayerWeights& weights,
                               const Matrix& hidden,
                               const RoutingReplay* replay) {
  CheckShapes(weights, hidden);
  MoeLayerResult result;
  MoeLayerSaved& saved = result.saved;
  saved.router_input =
      NoisyRouterInput(settings.noise, settings.first_token, hidden);
  saved.scores =
      NoisyScores(settings.noise, settings.first_token,
                  Multiply(saved.router_input, weights.router_weight));
  saved.routing = RouterForward(settings.router, saved.scores);
  if (replay != nullptr) ReplaySelection(replay->active, &saved.routing);
  saved.balance = Balance(settings, saved.scores, saved.routing);
  if (replay != nullptr) ReplayFractions(settings, *replay, &saved.balance);
  saved.z_loss = ZLoss(settings.z_loss_coeff, saved.scores);

  result.out = Matrix::Zero(hidden.rows(), hidden.cols());
  for (int64_t e = 0; e < saved.scores.cols(); ++e) {
    const TokenIndices tokens = TokensOf(saved.routing.active, e);
    const Matrix expert_out =
        ExpertForward(Gather(hidden, tokens), weights.gate_up_weight[e],
                      weights.down_weight[e]);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t t = tokens[i];
      result.out.row(t) += saved.routing.gates(t, e) * expert_out.row(i);
    }
  }
  return result;
}

MoeLayerGradients MoeLayerBackward(const MoeLayerSettings& settings,
                                   const MoeLayerWeights& weights,
                                   const Matrix& hidden,
                                   const MoeLayerSaved& saved,
                                   const Matrix& d_out,
                                   double auxiliary_scale) {
  CheckShapes(weights, hidden);
  SOFTMOE_CHECK(d_out.rows() == hidden.rows() && d_out.cols() == hidden.cols());
  MoeLayerGradients gradients;
  gradients.d_hidden = Matrix::Zero(hidden.rows(), hidden.cols());

  // Experts: out_t = sum_e gate_te E_e(x_t).
  Matrix d_gates = Matrix::Zero(saved.scores.rows(), saved.scores.cols());
  for (int64_t e = 0; e < saved.scores.cols(); ++e) {
    const TokenIndices tokens = TokensOf(saved.routing.active, e);
    const Matrix expert_hidden = Gather(hidden, tokens);
    const Matrix expert_out = ExpertForward(
        expert_hidden, weights.gate_up_weight[e], weights.down_weight[e]);
    Matrix d_expert_out = Gather(d_out, tokens);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t t = tokens[i];
      d_gates(t, e) = d_out.row(t).dot(expert_out.row(i));
      d_expert_out.row(i) *= saved.routing.gates(t, e);
    }
    const ExpertGradients expert =
        ExpertBackward(expert_hidden, weights.gate_up_weight[e],
                       weights.down_weight[e], d_expert_out);
    for (size_t i = 0; i < tokens.size(); ++i) {
      gradients.d_hidden.row(tokens[i]) += expert.d_hidden.row(i);
    }
    gradients.d_weights.gate_up_weight.push_back(expert.d_gate_up_weight);
    gradients.d_weights.down_weight.push_back(expert.d_down_weight);
  }

  // Router: the scores' gradient through the gates and the auxiliary losses.
  const RouterGradients router =
      RouterBackward(settings.router, saved.scores, saved.routing, d_gates);
  gradients.d_mean_active = router.d_mean_active;
  const Matrix d_scores =
      router.d_scores +
      auxiliary_scale * (BalanceGradient(settings, saved) +
                         ZLossGradient(settings.z_loss_coeff, saved.scores));
  gradients.d_weights.router_weight =
      Multiply(saved.router_input.transpose(), d_scores);
  gradients.d_hidden += NoisyRouterInputVjp(
      settings.noise, settings.first_token,
      Multiply(d_scores, weights.router_weight.transpose()));
  return gradients;
}

}  // namespace softmoe::reference
