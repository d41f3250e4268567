// SPDX-License-Identifier: Apache-2.0
#include "optimized/moe_block.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/errors.h"
#include "core/philox.h"
#include "core/profile.h"
#include "kernels/expert_mlp.h"
#include "kernels/gemm.h"
#include "kernels/noise.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"
#include "optimized/diverged.h"

namespace softmoe::optimized {
namespace {

bool IsSparse(const Pass& pass) {
  return pass.config.router.kind == RouterKind::kSparse;
}

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

// Multiplies the router's input, or the gradient by it, with the jitter.
kernels::InputJitterArgs Jitter(const Pass& pass, int64_t layer, const float* x,
                                float* y) {
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
  const bool soft_basis =
      !IsSparse(pass) && router.load_balance == LoadBalanceKind::kSoft;
  return {.num_tokens = pass.num_tokens,
          .num_experts = pass.config.model.num_experts,
          .mode = IsSparse(pass) ? kernels::RouterMode::kSparse
                                 : kernels::RouterMode::kSoft,
          .balance = soft_basis ? kernels::BalanceBasis::kSoftWeights
                                : kernels::BalanceBasis::kScoresSoftmax,
          .mean_active = static_cast<float>(allocation.mean_active),
          .temperature = static_cast<float>(pass.routing.temperature),
          .cutoff = static_cast<float>(allocation.cutoff),
          .max_active = allocation.max_active,
          .balance_top = allocation.balance_top,
          .fallback_top1 = router.fallback == Fallback::kTop1};
}

// f_i / N: the share of the load that expert `i` got, per token. The load
// balance loss is coefficient * E * sum_i f_i P_i with f_i held constant
// (DESIGN.md, ruling 6); with no token routed anywhere the load counts as even.
double LoadPerToken(const Pass& pass, const int64_t* counts, int64_t i) {
  int64_t sum = 0;
  for (int64_t e = 0; e < pass.config.model.num_experts; ++e) sum += counts[e];
  const double fraction =
      sum == 0 ? 1.0 / static_cast<double>(pass.config.model.num_experts)
               : static_cast<double>(counts[i]) / static_cast<double>(sum);
  return fraction / static_cast<double>(pass.num_tokens);
}

[[noreturn]] void ThrowBadScore(const Pass& pass, int64_t layer, int64_t flat) {
  const int64_t token = flat / pass.config.model.num_experts;
  const int64_t length = pass.config.model.sequence_length;
  ThrowDiverged("layer " + std::to_string(layer) + ", token " +
                std::to_string(pass.first_token + token) + " (sequence " +
                std::to_string(token / length) + " of its group, position " +
                std::to_string(token % length) + "), expert " +
                std::to_string(flat % pass.config.model.num_experts) +
                ": router score is " +
                std::to_string(pass.work.layers[layer].scores[flat]));
}

// The scores of the layer's router, noise included.
void ComputeScores(const Pass& pass, int64_t layer) {
  const ModelConfig& m = pass.config.model;
  const LayerActivations& acts = pass.work.layers[layer];
  const RouterConfig& router = pass.config.router;
  const float* input = acts.moe_normed.data();
  BeginOperation("router scores",
                 ProductWork(1, pass.num_tokens, m.num_experts, m.d_model));
  if (AddsNoise(pass, NoiseKind::kInputJitter)) {
    kernels::InputJitter(Jitter(pass, layer, input, acts.jittered.data()),
                         pass.pool);
    input = acts.jittered.data();
  }
  kernels::Gemm({.a = input,
                 .b = pass.parameters + pass.layout.layers[layer].router_weight,
                 .c = acts.scores.data(),
                 .m = pass.num_tokens,
                 .n = m.num_experts,
                 .k = m.d_model,
                 .lda = m.d_model,
                 .ldb = m.num_experts,
                 .ldc = m.num_experts},
                pass.pool);
  if (AddsNoise(pass, NoiseKind::kLogitGauss)) {
    kernels::LogitNoise({.num_tokens = pass.num_tokens,
                         .num_experts = m.num_experts,
                         .first_token = pass.first_token,
                         .key = NoiseKey(pass, layer),
                         .sigma = router.noise_amplitude,
                         .scores = acts.scores.data()},
                        pass.pool);
  }
}

// Tokens of which no weight exceeds the cutoff. A token that fell back has that
// one expert alone, with its weight, which does not exceed the cutoff either.
int64_t TokensBelowCutoff(const Pass& pass, int64_t layer,
                          const kernels::RouterShape& shape) {
  if (IsSparse(pass)) return 0;
  const int32_t* num_active = pass.work.layers[layer].num_active.data();
  const RoutedShare& share = pass.work.shares[layer];
  int64_t tokens = 0;
  for (int64_t t = 0; t < pass.num_tokens; ++t) {
    tokens += num_active[t] == 0 ||
              (num_active[t] == 1 &&
               !(share.gates[t * share.max_active] > shape.cutoff));
  }
  return tokens;
}

// From scores to gates, and to the plan by which rows go to experts.
LayerStats Route(const Pass& pass, int64_t layer,
                 const LayerAllocation& allocation) {
  const int64_t num_experts = pass.config.model.num_experts;
  const int64_t n = pass.num_tokens;
  const LayerActivations& acts = pass.work.layers[layer];
  const RoutedShare& share = pass.work.shares[layer];
  const Workspace& work = pass.work;
  const kernels::RouterShape shape = Shape(pass, allocation);
  BeginOperation("router", MoveWork(2, n * num_experts));
  int64_t* balance_counts = work.balance_counts.data() + layer * num_experts;
  double z_sum = 0;
  int64_t bad_score = -1;
  kernels::RouterForward({.shape = shape,
                          .scores = acts.scores.data(),
                          .soft_weights = acts.soft_weights.data(),
                          .root = acts.root.data(),
                          .num_active = acts.num_active.data(),
                          .selected = share.selected,
                          .gates = share.gates,
                          .probability_sums = work.probability_sums.data(),
                          .balance_counts = balance_counts,
                          .active_counts = work.active_counts.data(),
                          .z_sum = &z_sum,
                          .bad_score = &bad_score,
                          .scratch = work.router_scratch.data()},
                         pass.pool);
  if (bad_score >= 0) ThrowBadScore(pass, layer, bad_score);
  BeginOperation("route plan and counts", MoveWork(6, n * share.max_active));
  kernels::BuildRoutePlan({.num_tokens = n,
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
                          pass.pool);

  LayerStats stats;
  stats.tokens_per_expert.assign(work.active_counts.data(),
                                 work.active_counts.data() + num_experts);
  stats.active_histogram.assign(static_cast<size_t>(num_experts) + 1, 0);
  for (int64_t t = 0; t < n; ++t) ++stats.active_histogram[acts.num_active[t]];
  stats.tokens_below_cutoff = TokensBelowCutoff(pass, layer, shape);
  double balance = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    balance += LoadPerToken(pass, balance_counts, e) * work.probability_sums[e];
  }
  const RouterConfig& router = pass.config.router;
  stats.load_balance_loss =
      router.aux_loss_coeff * static_cast<double>(num_experts) * balance;
  stats.z_loss = router.z_loss_coeff * z_sum / static_cast<double>(n);
  return stats;
}

// d_scores of the layer and d_mean_active (returned), from work.d_row_gate.
double RouteBackward(const Pass& pass, int64_t layer,
                     const LayerAllocation& allocation, double group_scale) {
  const RouterConfig& router = pass.config.router;
  const int64_t num_experts = pass.config.model.num_experts;
  const int64_t n = pass.num_tokens;
  const LayerActivations& acts = pass.work.layers[layer];
  const RoutedShare& share = pass.work.shares[layer];
  const Workspace& work = pass.work;
  BeginOperation("router, backward", MoveWork(3, n * num_experts));
  // Both lists of a token are in order of ascending expert.
  for (int64_t i = 0; i < n * share.max_active; ++i) {
    const int32_t row = share.token_rows[i];
    work.d_gates[i] = row < 0 ? 0.0f : work.d_row_gate[row];
  }
  const int64_t* counts = work.balance_counts.data() + layer * num_experts;
  const double balance_scale =
      group_scale * router.aux_loss_coeff * static_cast<double>(num_experts);
  for (int64_t e = 0; e < num_experts; ++e) {
    work.d_probability[e] =
        static_cast<float>(balance_scale * LoadPerToken(pass, counts, e));
  }
  double d_mean_active = 0;
  kernels::RouterBackward(
      {.shape = Shape(pass, allocation),
       .scores = acts.scores.data(),
       .soft_weights = acts.soft_weights.data(),
       .root = acts.root.data(),
       .selected = share.selected,
       .d_gates = work.d_gates.data(),
       .d_probability = work.d_probability.data(),
       .z_scale = static_cast<float>(group_scale * router.z_loss_coeff /
                                     static_cast<double>(n)),
       .d_scores = work.d_scores.data(),
       .d_mean_active = &d_mean_active,
       .scratch = work.router_scratch.data()},
      pass.pool);
  return d_mean_active;
}

// Gradients of the router weight, and of the router's input into d_normed.
void ScoresBackward(const Pass& pass, int64_t layer, float* gradients) {
  const int64_t n = pass.num_tokens, d = pass.config.model.d_model;
  const int64_t num_experts = pass.config.model.num_experts;
  const LayerActivations& acts = pass.work.layers[layer];
  const Workspace& work = pass.work;
  const int64_t router_weight = pass.layout.layers[layer].router_weight;
  const bool jitter = AddsNoise(pass, NoiseKind::kInputJitter);
  BeginOperation("router scores, backward", ProductWork(2, n, num_experts, d));
  // d_router_weight = input^T d_scores
  kernels::Gemm({.a = jitter ? acts.jittered.data() : acts.moe_normed.data(),
                 .b = work.d_scores.data(),
                 .c = gradients + router_weight,
                 .m = d,
                 .n = num_experts,
                 .k = n,
                 .lda = d,
                 .ldb = num_experts,
                 .ldc = num_experts,
                 .transpose_a = true},
                pass.pool);
  // d_input = d_scores router_weight^T
  kernels::Gemm({.a = work.d_scores.data(),
                 .b = pass.parameters + router_weight,
                 .c = jitter ? work.d_jittered.data() : work.d_normed.data(),
                 .m = n,
                 .n = d,
                 .k = num_experts,
                 .lda = num_experts,
                 .ldb = num_experts,
                 .ldc = d,
                 .transpose_b = true,
                 .accumulate = !jitter},
                pass.pool);
  if (jitter) {
    kernels::InputJitterArgs args =
        Jitter(pass, layer, work.d_jittered.data(), work.d_normed.data());
    args.accumulate = true;
    kernels::InputJitter(args, pass.pool);
  }
}

}  // namespace

LayerStats MoeBlockForward(const Pass& pass, int64_t layer,
                           const LayerAllocation& allocation, float* out) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  const LayerActivations& acts = pass.work.layers[layer];
  BeginOperation("norm", MoveWork(2, pass.num_tokens * m.d_model));
  kernels::RmsNormForward({.num_tokens = pass.num_tokens,
                           .d_model = m.d_model,
                           .epsilon = static_cast<float>(m.norm_epsilon),
                           .x = acts.moe_residual.data(),
                           .weight = pass.parameters + offsets.moe_norm,
                           .y = acts.moe_normed.data(),
                           .rstd = acts.moe_rstd.data()},
                          pass.pool);
  ComputeScores(pass, layer);
  LayerStats stats = Route(pass, layer, allocation);
  ParallelCopy(pass.pool, pass.num_tokens * m.d_model, acts.moe_residual.data(),
               out);
  const kernels::RoutePlan plan = pass.work.Plan(layer, pass.num_tokens);
  BeginOperation("experts",
                 ProductWork(3, plan.num_routed, m.d_ffn, m.d_model));
  kernels::ExpertForward(
      {.plan = plan,
       .d_model = m.d_model,
       .d_ffn = m.d_ffn,
       .hidden = acts.moe_normed.data(),
       .gate_up_weight = pass.parameters + offsets.gate_up_weight,
       .down_weight = pass.parameters + offsets.down_weight,
       .gate_up = pass.work.shares[layer].gate_up,
       .row_output = pass.work.row_output.data(),
       .out = out},
      pass.pool);
  return stats;
}

double MoeBlockBackward(const Pass& pass, int64_t layer,
                        const LayerAllocation& allocation, double group_scale,
                        float* gradients) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  const LayerActivations& acts = pass.work.layers[layer];
  const Workspace& work = pass.work;
  const kernels::RoutePlan plan = work.Plan(layer, pass.num_tokens);
  BeginOperation("experts, backward",
                 ProductWork(6, plan.num_routed, m.d_ffn, m.d_model));
  kernels::ExpertBackward(
      {.plan = plan,
       .d_model = m.d_model,
       .d_ffn = m.d_ffn,
       .hidden = acts.moe_normed.data(),
       .gate_up_weight = pass.parameters + offsets.gate_up_weight,
       .down_weight = pass.parameters + offsets.down_weight,
       .gate_up = work.shares[layer].gate_up,
       .d_out = work.d_residual.data(),
       .d_gate_up = work.d_gate_up.data(),
       .d_row_hidden = work.row_output.data(),
       .activation = work.activation.data(),
       .d_row_gate = work.d_row_gate.data(),
       .d_hidden = work.d_normed.data(),
       .d_gate_up_weight = gradients + offsets.gate_up_weight,
       .d_down_weight = gradients + offsets.down_weight},
      pass.pool);
  const double d_mean_active =
      RouteBackward(pass, layer, allocation, group_scale);
  ScoresBackward(pass, layer, gradients);
  BeginOperation("norm, backward", MoveWork(4, pass.num_tokens * m.d_model));
  kernels::RmsNormBackward({.num_tokens = pass.num_tokens,
                            .d_model = m.d_model,
                            .x = acts.moe_residual.data(),
                            .weight = pass.parameters + offsets.moe_norm,
                            .rstd = acts.moe_rstd.data(),
                            .d_y = work.d_normed.data(),
                            .d_x = work.d_residual.data(),
                            .d_weight = gradients + offsets.moe_norm,
                            .scratch = work.norm_scratch.data()},
                           pass.pool);
  return d_mean_active;
}

}  // namespace softmoe::optimized
