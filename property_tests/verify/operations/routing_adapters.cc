// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "optimized/allocation.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {

TensorMap RunRoutingCounts(const Case& c, const TensorMap& inputs,
                           const RowKernels& run) {
  const SelectedExperts selection(c, inputs);
  const std::vector<float> scores = ToFloats(At(inputs, "scores"));
  const auto bad_score = static_cast<int64_t>(ScalarOf(inputs, "bad_score"));
  Guarded<int64_t> histogram("active_histogram", selection.num_experts + 1);
  Guarded<int64_t> below("below_cutoff", 1);
  Guarded<double> bad_value("bad_value", 1);
  run.routing_counts({.num_tokens = selection.rows,
                      .num_experts = selection.num_experts,
                      .max_active = selection.max_active,
                      .has_cutoff = c.Choice("router") == "soft",
                      .cutoff = static_cast<float>(ScalarOf(inputs, "cutoff")),
                      .num_active = selection.num_active.data(),
                      .gates = selection.gates.data(),
                      .active_histogram = histogram.data(),
                      .below_cutoff = below.data(),
                      .scores = scores.data(),
                      .bad_score = &bad_score,
                      .bad_value = bad_value.data()});
  return {{"active_histogram",
           histogram.TakeTensor(Dtype::kI32, {selection.num_experts + 1})},
          {"below_cutoff", below.TakeTensor(Dtype::kI32, {})},
          {"bad_value", bad_value.TakeTensor(Dtype::kF64, {})}};
}

TensorMap RunRoutePlan(const Case& c, const TensorMap& inputs,
                       const RowKernels& run) {
  const SelectedExperts selection(c, inputs);
  const int64_t n = selection.rows, experts = selection.num_experts;
  const int64_t a = selection.max_active, slots = selection.num_slots();
  Guarded<int32_t> offsets("expert_offsets", experts + 1);
  Guarded<int32_t> row_token("row_token", slots);
  Guarded<float> row_gate("row_gate", slots);
  Guarded<int32_t> token_rows("token_rows", slots);
  Guarded<int32_t> scratch("scratch", kernels::RoutePlanScratch(n, experts));
  run.build_route_plan({n, experts, a, selection.num_active.data(),
                        selection.selected.data(), selection.gates.data(),
                        offsets.data(), row_token.data(), row_gate.data(),
                        token_rows.data(), scratch.data()});
  scratch.Take();
  // Nothing may be written after the last row.
  std::vector<int32_t> tokens = row_token.Take();
  std::vector<float> gates = row_gate.Take();
  for (int64_t i = selection.num_routed(); i < slots; ++i) {
    if (tokens[i] == std::numeric_limits<int32_t>::min()) tokens[i] = -1;
    if (std::isnan(gates[i])) gates[i] = 0;
  }

  std::vector<float> d_row_gate;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = selection.expert_offsets[e];
         i < selection.expert_offsets[e + 1]; ++i) {
      d_row_gate.push_back(static_cast<float>(
          At(inputs, "d_row_gate")
              .values[selection.row_token[i] * experts + e]));
    }
  }
  Guarded<float> d_gates("d_gates", slots);
  run.gather_gate_gradients(
      {n, a, selection.token_rows.data(), d_row_gate.data(), d_gates.data()});
  return {
      {"expert_offsets", offsets.TakeTensor(Dtype::kI32, {experts + 1})},
      {"row_token", FromVector(Dtype::kI32, {slots}, tokens)},
      {"row_gate", FromVector(Dtype::kF32, {slots}, gates)},
      {"token_rows", token_rows.TakeTensor(Dtype::kI32, {n, a})},
      {"d_gates", selection.ByExpert(d_gates.Take())},
  };
}

TensorMap RunBalanceLoss(const Case& c, const TensorMap& inputs,
                         const RowKernels& run) {
  const int64_t experts = c.Size("num_experts");
  const std::vector<int32_t> ids = ToInts(At(inputs, "counts"));
  const std::vector<int64_t> counts(ids.begin(), ids.end());
  const double z_sum = ScalarOf(inputs, "z_sum");
  Guarded<double> balance("load_balance_loss", 1), z("z_loss", 1);
  Guarded<float> d_probability("d_probability", experts);
  run.balance_loss(
      {.num_tokens = c.Size("tokens"),
       .num_experts = experts,
       .aux_loss_coeff = ScalarOf(inputs, "aux_loss_coeff"),
       .z_loss_coeff = ScalarOf(inputs, "z_loss_coeff"),
       .group_scale = ScalarOf(inputs, "group_scale"),
       .balance_counts = counts.data(),
       .probability_sums = At(inputs, "probability_sums").values.data(),
       .z_sum = &z_sum,
       .load_balance_loss = balance.data(),
       .z_loss = z.data(),
       .d_probability = d_probability.data()});
  return {{"load_balance_loss", balance.TakeTensor(Dtype::kF64, {})},
          {"z_loss", z.TakeTensor(Dtype::kF64, {})},
          {"d_probability", d_probability.TakeTensor(Dtype::kF32, {experts})}};
}

TensorMap RunBudget(const Case& c, const TensorMap& inputs,
                    const RowKernels& run) {
  Config config;
  config.model.num_layers = c.Size("layers");
  config.model.num_experts = c.Size("num_experts");
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = ScalarOf(inputs, "mean_active_experts");
  config.router.expansion_factor = ScalarOf(inputs, "expansion_factor");
  const int64_t layers = config.model.num_layers;
  const std::vector<float> logits = ToFloats(At(inputs, "budget_logits"));
  const auto allocations =
      optimized::ComputeAllocations(config, logits, ScalarOf(inputs, "tau"));
  Tensor k(Dtype::kF64, {layers}), cutoff(Dtype::kF64, {layers});
  Tensor cap(Dtype::kI32, {layers}), top(Dtype::kI32, {layers});
  for (int64_t l = 0; l < layers; ++l) {
    const optimized::LayerAllocation& each = allocations.at(l);
    k.values[l] = each.mean_active;
    cutoff.values[l] = each.cutoff;
    cap.values[l] = static_cast<double>(each.max_active);
    top.values[l] = static_cast<double>(each.balance_top);
  }
  Guarded<float> d_logits("d_budget_logits", layers);
  const std::vector<double> shares = optimized::BudgetShares(logits);
  run.budget_gradient(
      {.num_layers = layers,
       .spare_budget = optimized::SpareBudget(config),
       .shares = shares.data(),
       .d_mean_active = At(inputs, "d_mean_active").values.data(),
       .d_budget_logits = d_logits.data()});
  return {{"mean_active", k},
          {"cutoff", cutoff},
          {"max_active", cap},
          {"balance_top", top},
          {"d_budget_logits", d_logits.TakeTensor(Dtype::kF32, {layers})}};
}

}  // namespace softmoe::verify
