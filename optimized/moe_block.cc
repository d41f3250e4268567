// SPDX-License-Identifier: Apache-2.0
#include "core/config/router_traits.h"
#include "core/philox.h"
#include "core/profile.h"
#include "kernels/balance_loss.h"
#include "kernels/expert_mlp.h"
#include "kernels/noise.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"
#include "kernels/routing_counts.h"
#include "optimized/blocks.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

bool AddsNoise(const Pass& pass, NoiseKind kind) {
  return pass.routing.noise && pass.config.router.noise == kind;
}

// Addresses the layer's draws of this step.
RandomKey NoiseKey(const Pass& pass, int64_t layer) {
  return {.seed = static_cast<uint64_t>(pass.config.training.seed),
          .stream = RandomStream::kRouterNoise,
          .step = static_cast<uint32_t>(pass.routing.step),
          .layer = static_cast<uint32_t>(layer)};
}

// Multiplies the router's input, or the gradient by it, by the jitter.
template <typename X, typename Y>
kernels::InputJitterArgsOf<X, Y> Jitter(const Pass& pass, int64_t layer,
                                        const X* x, Y* y) {
  return {.num_tokens = pass.num_tokens,
          .d_model = pass.config.model.d_model,
          .first_token = pass.first_token,
          .key = NoiseKey(pass, layer),
          .amplitude = pass.config.router.noise_amplitude,
          .x = x,
          .y = y};
}

kernels::RouterShape Shape(const Pass& pass,
                           const LayerAllocation& allocation) {
  const RouterConfig& router = pass.config.router;
  const bool lapsum = TraitsOf(pass.config).lapsum;
  const bool soft_basis =
      lapsum && router.load_balance == LoadBalanceKind::kSoft;
  return {.num_tokens = pass.num_tokens,
          .num_experts = pass.config.model.num_experts,
          .mode = lapsum ? kernels::RouterMode::kSoft
                         : kernels::RouterMode::kSparse,
          .balance = soft_basis ? kernels::BalanceBasis::kSoftWeights
                                : kernels::BalanceBasis::kScoresSoftmax,
          .mean_active = static_cast<float>(allocation.mean_active),
          .temperature = static_cast<float>(pass.routing.temperature),
          .cutoff = static_cast<float>(allocation.cutoff),
          .max_active = allocation.max_active,
          .balance_top = allocation.balance_top,
          .fallback_top1 = router.fallback == Fallback::kTop1};
}

// The normed residual, which experts and router read.
void ComputeNorm(const Pass& pass, int64_t layer) {
  const LayerActivations& acts = pass.work.layers[layer];
  NormForward(pass, pass.fp32 + pass.fp32_layout.layers[layer].moe_norm,
              acts.moe_residual, acts.moe_normed, acts.moe_rstd);
}

// The router's input, noise included, as floats.
const float* RouterInput(const Pass& pass, int64_t layer) {
  const LayerActivations& acts = pass.work.layers[layer];
  const Activation* normed = acts.moe_normed.data();
  if (!AddsNoise(pass, NoiseKind::kInputJitter)) {
    return CastTo(pass.queue, pass.num_tokens * pass.config.model.d_model,
                  normed, acts.router_input.data());
  }
  ops::InputJitter(Jitter(pass, layer, normed, acts.router_input.data()),
                   pass.queue);
  return acts.router_input.data();
}

// The scores of the layer's router, noise included.
void ComputeScores(const Pass& pass, int64_t layer) {
  const ModelConfig& m = pass.config.model;
  const LayerActivations& acts = pass.work.layers[layer];
  const RouterConfig& router = pass.config.router;
  BeginOperation("router scores",
                 ProductWork(1, pass.num_tokens, m.num_experts, m.d_model));
  const float* input = RouterInput(pass, layer);
  Multiply(pass, input,
           pass.fp32 + pass.fp32_layout.layers[layer].router_weight,
           acts.scores.data(),
           {.m = pass.num_tokens, .n = m.num_experts, .k = m.d_model});
  if (AddsNoise(pass, NoiseKind::kLogitGauss)) {
    ops::LogitNoise({.num_tokens = pass.num_tokens,
                     .num_experts = m.num_experts,
                     .first_token = pass.first_token,
                     .key = NoiseKey(pass, layer),
                     .sigma = router.noise_amplitude,
                     .scores = acts.scores.data()},
                    pass.queue);
  }
}

// Turns scores into gates, the plan by which rows go to experts, and the
// layer's part of the report.
void Route(const Pass& pass, int64_t layer, const LayerAllocation& allocation) {
  const RouterConfig& router = pass.config.router;
  const int64_t num_experts = pass.config.model.num_experts;
  const int64_t n = pass.num_tokens;
  const LayerActivations& acts = pass.work.layers[layer];
  const RoutedShare& share = pass.work.shares[layer];
  const Workspace& work = pass.work;
  const LayerReport report = work.report.Layer(pass.report, layer);
  const kernels::RouterShape shape = Shape(pass, allocation);
  BeginOperation("router", MoveWork<float>(2, n * num_experts));
  ops::RouterForward({.shape = shape,
                      .scores = acts.scores.data(),
                      .soft_weights = acts.soft_weights.data(),
                      .root = acts.root.data(),
                      .num_active = acts.num_active.data(),
                      .selected = share.selected,
                      .gates = share.gates,
                      .probability_sums = work.probability_sums.data(),
                      .balance_counts = report.balance_counts,
                      .active_counts = report.tokens_per_expert,
                      .z_sum = work.z_sum.data(),
                      .bad_score = report.bad_score,
                      .scratch = work.router_scratch.data()},
                     pass.queue);
  BeginOperation("route plan and counts",
                 MoveWork<float>(6, n * share.max_active));
  ops::BuildRoutePlan({.num_tokens = n,
                       .num_experts = num_experts,
                       .max_active = share.max_active,
                       .num_active = acts.num_active.data(),
                       .selected = share.selected,
                       .gates = share.gates,
                       .expert_offsets = acts.expert_offsets.data(),
                       .row_token = share.row_token,
                       .row_gate = share.row_gate,
                       .token_rows = share.token_rows,
                       .scratch = work.route_scratch.data()},
                      pass.queue);
  ops::RoutingCounts({.num_tokens = n,
                      .num_experts = num_experts,
                      .max_active = share.max_active,
                      .has_cutoff = TraitsOf(pass.config).cutoff,
                      .cutoff = shape.cutoff,
                      .num_active = acts.num_active.data(),
                      .gates = share.gates,
                      .active_histogram = report.active_histogram,
                      .below_cutoff = report.tokens_below_cutoff,
                      .scores = acts.scores.data(),
                      .bad_score = report.bad_score,
                      .bad_value = report.bad_value},
                     pass.queue);
  ops::BalanceLoss({.num_tokens = n,
                    .num_experts = num_experts,
                    .aux_loss_coeff = router.aux_loss_coeff,
                    .z_loss_coeff = router.z_loss_coeff,
                    .group_scale = pass.group_scale,
                    .balance_counts = report.balance_counts,
                    .probability_sums = work.probability_sums.data(),
                    .z_sum = work.z_sum.data(),
                    .load_balance_loss = report.load_balance_loss,
                    .z_loss = report.z_loss,
                    .d_probability = acts.d_probability.data()},
                   pass.queue);
}

// Computes the layer's d_scores from work.d_row_gate, and writes its
// d_mean_active into the report.
void RouteBackward(const Pass& pass, int64_t layer,
                   const LayerAllocation& allocation) {
  const int64_t num_experts = pass.config.model.num_experts;
  const int64_t n = pass.num_tokens;
  const LayerActivations& acts = pass.work.layers[layer];
  const RoutedShare& share = pass.work.shares[layer];
  const Workspace& work = pass.work;
  BeginOperation("router, backward", MoveWork<float>(3, n * num_experts));
  ops::GatherGateGradients({.num_tokens = n,
                            .max_active = share.max_active,
                            .token_rows = share.token_rows,
                            .d_row_gate = work.d_row_gate.data(),
                            .d_gates = work.d_gates.data()},
                           pass.queue);
  ops::RouterBackward(
      {.shape = Shape(pass, allocation),
       .scores = acts.scores.data(),
       .soft_weights = acts.soft_weights.data(),
       .root = acts.root.data(),
       .selected = share.selected,
       .d_gates = work.d_gates.data(),
       .d_probability = acts.d_probability.data(),
       .z_scale = static_cast<float>(pass.group_scale *
                                     pass.config.router.z_loss_coeff /
                                     static_cast<double>(n)),
       .d_scores = work.d_scores.data(),
       .d_mean_active = work.report.Layer(pass.report, layer).d_mean_active,
       .scratch = work.router_scratch.data()},
      pass.queue);
}

// Computes the router weight's gradient; adds the input's to d_normed.
void ScoresBackward(const Pass& pass, int64_t layer, float* gradients) {
  const int64_t n = pass.num_tokens, d = pass.config.model.d_model;
  const int64_t num_experts = pass.config.model.num_experts;
  const LayerActivations& acts = pass.work.layers[layer];
  const Workspace& work = pass.work;
  const bool jitter = AddsNoise(pass, NoiseKind::kInputJitter);
  // The input is where RouterInput left it. Its gradient goes to d_normed, by
  // way of an array of its own if it needs a cast or jitter.
  float* apart = work.d_router_input.data();
  const float* input = acts.router_input.data();
  float* d_input = apart;
  if (!jitter) {
    input = InPlaceOr<const Activation>(acts.moe_normed.data(), input);
    d_input = InPlaceOr(work.d_normed.data(), apart);
  }
  BeginOperation("router scores, backward", ProductWork(2, n, num_experts, d));
  // d_router_weight = input^T d_scores
  Multiply(pass, input, work.d_scores.data(),
           gradients + pass.layout.layers[layer].router_weight,
           {.m = d, .n = num_experts, .k = n, .transpose_a = true});
  // d_input = d_scores router_weight^T
  Multiply(pass, work.d_scores.data(),
           pass.fp32 + pass.fp32_layout.layers[layer].router_weight, d_input,
           {.m = n,
            .n = d,
            .k = num_experts,
            .transpose_b = true,
            .accumulate = d_input != apart});
  if (jitter) {
    auto args = Jitter(pass, layer, d_input, work.d_normed.data());
    args.accumulate = true;
    ops::InputJitter(args, pass.queue);
  } else if (d_input == apart) {
    ops::Add(
        kernels::AddArgsOf<float, Activation>{
            .size = n * d, .x = d_input, .y = work.d_normed.data()},
        pass.queue);
  }
}

// Without `out`, computes only gate_up.
kernels::ExpertForwardArgsOf<Activation> Experts(const Pass& pass,
                                                 int64_t layer,
                                                 const kernels::RoutePlan& plan,
                                                 Activation* out) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  return {.plan = plan,
          .d_model = m.d_model,
          .d_ffn = m.d_ffn,
          .hidden = pass.work.layers[layer].moe_normed.data(),
          .gate_up_weight = pass.weights + offsets.gate_up_weight,
          .down_weight = pass.weights + offsets.down_weight,
          .gate_up = pass.work.shares[layer].gate_up,
          .row_output = pass.work.row_output.data(),
          .out = out,
          .activation = pass.work.activation.data(),
          .host_offsets = pass.work.HostOffsets(layer)};
}

}  // namespace

void MoeBlockForward(const Pass& pass, int64_t layer,
                     const LayerAllocation& allocation, Activation* out) {
  const ModelConfig& m = pass.config.model;
  ComputeNorm(pass, layer);
  ComputeScores(pass, layer);
  Route(pass, layer, allocation);
  CopyResidual(pass, pass.work.layers[layer].moe_residual.data(), out);
  const kernels::RoutePlan plan =
      pass.work.FetchPlan(pass.queue, layer, pass.num_tokens);
  BeginOperation("experts",
                 ProductWork(3, plan.num_routed, m.d_ffn, m.d_model));
  ops::ExpertForward(Experts(pass, layer, plan, out), pass.queue);
}

void RecomputeRouterInput(const Pass& pass, int64_t layer) {
  ComputeNorm(pass, layer);
  (void)RouterInput(pass, layer);
}

void RecomputeExperts(const Pass& pass, int64_t layer) {
  const ModelConfig& m = pass.config.model;
  const kernels::RoutePlan plan = pass.work.Plan(layer, pass.num_tokens);
  BeginOperation("experts",
                 ProductWork(2, plan.num_routed, m.d_ffn, m.d_model));
  ops::ExpertForward(Experts(pass, layer, plan, /*out=*/nullptr), pass.queue);
}

void MoeBlockBackward(const Pass& pass, int64_t layer,
                      const LayerAllocation& allocation, float* gradients) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  const LayerActivations& acts = pass.work.layers[layer];
  const Workspace& work = pass.work;
  const kernels::RoutePlan plan = work.Plan(layer, pass.num_tokens);
  BeginOperation("experts, backward",
                 ProductWork(6, plan.num_routed, m.d_ffn, m.d_model));
  ops::ExpertBackward({.plan = plan,
                       .d_model = m.d_model,
                       .d_ffn = m.d_ffn,
                       .hidden = acts.moe_normed.data(),
                       .gate_up_weight = pass.weights + offsets.gate_up_weight,
                       .down_weight = pass.weights + offsets.down_weight,
                       .gate_up = work.shares[layer].gate_up,
                       .d_out = work.d_residual.data(),
                       .d_gate_up = work.d_gate_up.data(),
                       .d_row_hidden = work.row_output.data(),
                       .activation = work.activation.data(),
                       .d_row_gate = work.d_row_gate.data(),
                       .d_hidden = work.d_normed.data(),
                       .d_gate_up_weight = gradients + offsets.gate_up_weight,
                       .d_down_weight = gradients + offsets.down_weight,
                       .host_offsets = work.HostOffsets(layer)},
                      pass.queue);
  RouteBackward(pass, layer, allocation);
  ScoresBackward(pass, layer, gradients);
  NormBackward(pass, pass.fp32 + pass.fp32_layout.layers[layer].moe_norm,
               acts.moe_residual, acts.moe_rstd, gradients + offsets.moe_norm);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
