// SPDX-License-Identifier: Apache-2.0
#include "reference/moe_layer.h"

#include <utility>

#include "core/errors.h"
#include "reference/load_balance.h"
#include "reference/router.h"

namespace softmoe::reference {
namespace {

void CheckShapes(const MoeLayerWeights& weights, const Matrix& hidden) {
  const size_t num_experts = static_cast<size_t>(weights.router_weight.cols());
  SOFTMOE_CHECK(weights.router_weight.rows() == hidden.cols() &&
                weights.gate_up_weight.size() == num_experts &&
                weights.down_weight.size() == num_experts)
      << "router [" << weights.router_weight.rows() << ", " << num_experts
      << "], " << weights.gate_up_weight.size() << " and "
      << weights.down_weight.size() << " experts, d_model " << hidden.cols();
  for (size_t e = 0; e < num_experts; ++e) {
    CheckExpertShapes(hidden, weights.gate_up_weight[e],
                      weights.down_weight[e]);
  }
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
  routing->gates = formula::Gates<double>(active, routing->soft_weights);
}

// Replays the fractions. (The soft reading has counted the active set already.)
void ReplayFractions(const MoeLayerSettings& settings,
                     const RoutingReplay& replay, LoadBalance* balance) {
  if (replay.balance_fractions.size() > 0) {
    SOFTMOE_CHECK(replay.balance_fractions.size() == replay.active.cols());
    balance->fractions = replay.balance_fractions;
  } else if (settings.router.kind == RouterKind::kSparse) {
    SOFTMOE_CHECK(replay.active.any()) << "replayed active set is empty";
    balance->fractions = formula::Fractions(replay.active);
  }
  balance->loss = formula::BalanceLoss<double>(
      settings.aux_loss_coeff, balance->fractions, balance->probabilities);
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

  result.out = formula::MixExperts<double>(
      saved.routing.active, saved.routing.gates, weights, hidden);
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
  formula::MixExpertsGradients<double> experts =
      formula::MixExpertsBackward<double>(
          saved.routing.active, saved.routing.gates, weights, hidden, d_out);
  MoeLayerGradients gradients;
  gradients.d_hidden = std::move(experts.d_hidden);
  gradients.d_weights = {std::move(experts.d_weights), {}};

  // Router: the scores' gradient through the gates and the auxiliary losses.
  const RouterGradients router = RouterBackward(settings.router, saved.scores,
                                                saved.routing, experts.d_gates);
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
