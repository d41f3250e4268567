// SPDX-License-Identifier: Apache-2.0
//
// Plans of rows, counts and balance losses through the simulator: no token,
// one, blocks of tokens that are partly empty, more pairs than a chunk of
// shared memory, more blocks than the scan has strips. Their results are tested
// by verify, op=route_plan, op=routing_counts, op=balance_loss and op=budget.
#include "kernels/cuda/routing_kernels.h"
#include "kernels/simt/device/shim_test_support.h"
#include "kernels/testing/random_routing.h"

namespace softmoe::kernels {
namespace {

void CheckRouting(int64_t num_tokens, int64_t num_experts, int64_t max_active) {
  const RandomRouting routing(num_tokens, num_experts, max_active);
  CheckSchedules("routing", [&](DeviceRun& run) {
    const auto plan = run.Call(
        isa_shim::BuildRoutePlan,
        BuildRoutePlanArgs{
            .num_tokens = num_tokens,
            .num_experts = num_experts,
            .max_active = max_active,
            .num_active = routing.num_active.data(),
            .selected = routing.selected.data(),
            .gates = routing.gates.data(),
            // Nothing is written to the last rows, which belong to no token.
            .row_token = run.Out<int32_t>(routing.num_routed()),
            .row_gate = run.Out<float>(routing.num_routed())});
    const auto token_rows = run.Read(plan.token_rows, num_tokens * max_active);
    run.Call(isa_shim::GatherGateGradients,
             GatherGateGradientsArgs{.num_tokens = num_tokens,
                                     .max_active = max_active,
                                     .token_rows = token_rows.data()});
    for (const bool has_cutoff : {false, true}) {
      const int64_t bad_score = has_cutoff && num_tokens > 0 ? 0 : -1;
      const auto counts =
          run.Call(isa_shim::RoutingCounts,
                   RoutingCountsArgs{.num_tokens = num_tokens,
                                     .num_experts = num_experts,
                                     .max_active = max_active,
                                     .has_cutoff = has_cutoff,
                                     .cutoff = 0.1f,
                                     .num_active = plan.num_active,
                                     .gates = plan.gates,
                                     .bad_score = &bad_score});
      const double bad = bad_score < 0 ? 0 : run.Read(counts.scores, 1)[0];
      if (run.Read(counts.bad_value, 1)[0] != bad) Fail("not the bad score");
    }
  });
}

void CheckBalanceLoss(int64_t num_experts) {
  std::vector<int64_t> counts;
  for (const int32_t count : RandomIndices(num_experts, 9, 7)) {
    counts.push_back(count);
  }
  CheckSchedules("balance loss", [&](DeviceRun& run) {
    run.Call(isa_shim::BalanceLoss,
             BalanceLossArgs{.num_tokens = 9,
                             .num_experts = num_experts,
                             .aux_loss_coeff = 0.01,
                             .z_loss_coeff = 0.001,
                             .group_scale = 0.5,
                             .balance_counts = counts.data()});
  });
}

void CheckBudgetGradient(int64_t num_layers) {
  CheckSchedules("budget gradient", [&](DeviceRun& run) {
    run.Call(isa_shim::BudgetGradient,
             BudgetGradientArgs{.num_layers = num_layers, .spare_budget = 2.5});
  });
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 256, 300}) {
    CheckRouting(num_tokens, 1, 1);
    CheckRouting(num_tokens, 5, 3);
  }
  CheckRouting(300, 33, 16);   // several chunks
  CheckRouting(11, 256, 256);  // up to all experts
  // More blocks than strips.
  CheckRouting(33 * kRoutePlanTokenBlock + 1, 33, 1);
  for (const int64_t num_experts : {1, 32, 256}) CheckBalanceLoss(num_experts);
  for (const int64_t num_layers : {1, 10}) CheckBudgetGradient(num_layers);
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
