// SPDX-License-Identifier: Apache-2.0
#include "optimized/allocation.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

using Floats = std::vector<float>;

}  // namespace

TensorMap RunBudget(const Case& c, const TensorMap& inputs,
                    const RowKernels& run) {
  Config config;
  config.model.num_layers = c.Size("layers");
  config.model.num_experts = c.Size("num_experts");
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = ScalarOf(inputs, "mean_active_experts");
  config.router.expansion_factor = ScalarOf(inputs, "expansion_factor");
  const int64_t layers = config.model.num_layers;
  const Floats logits = ToFloats(At(inputs, "budget_logits"));
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
