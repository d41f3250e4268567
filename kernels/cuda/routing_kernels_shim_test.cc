// SPDX-License-Identifier: Apache-2.0
//
// Plans of rows, counts and balance losses through the simulator: no token,
// one, blocks of tokens that are partly empty, more pairs than a chunk of
// shared memory, more blocks than the scan has strips. Their results are tested
// by verify, op=route_plan, op=routing_counts, op=balance_loss and op=budget.
#include "kernels/cuda/routing_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

// Tokens with up to max_active experts each, in ascending order.
struct Routing {
  std::vector<int32_t> num_active, selected;
  std::vector<float> gates;
  int64_t num_routed = 0;

  Routing(int64_t num_tokens, int64_t num_experts, int64_t max_active) {
    Draws draws(5);
    for (int64_t t = 0; t < num_tokens; ++t) {
      int64_t active = 0;
      for (int64_t e = 0; e < num_experts && active < max_active; ++e) {
        if (draws.Below(num_experts) > max_active) continue;
        selected.push_back(static_cast<int32_t>(e));
        gates.push_back(draws.Signed());
        ++active;
      }
      num_routed += active;
      num_active.push_back(static_cast<int32_t>(active));
      selected.resize(static_cast<size_t>((t + 1) * max_active), -1);
      gates.resize(selected.size(), 0.0f);
    }
  }
};

void CheckRouting(int64_t num_tokens, int64_t num_experts, int64_t max_active) {
  const Routing routing(num_tokens, num_experts, max_active);
  const int64_t pairs = num_tokens * max_active, rows = routing.num_routed;
  CheckSchedules("routing", [&](Outputs& outputs) {
    const int32_t* num_active = outputs.In(routing.num_active);
    const float* gates = outputs.In(routing.gates);
    int32_t* token_rows = outputs.Add<int32_t>(pairs);
    float* row_gate = outputs.Add<float>(rows);
    isa_shim::BuildRoutePlan(
        {.num_tokens = num_tokens,
         .num_experts = num_experts,
         .max_active = max_active,
         .num_active = num_active,
         .selected = outputs.In(routing.selected),
         .gates = gates,
         .expert_offsets = outputs.Add<int32_t>(num_experts + 1),
         .row_token = outputs.Add<int32_t>(rows),
         .row_gate = row_gate,
         .token_rows = token_rows,
         .scratch = outputs.AddScratch<int32_t>(
             RoutePlanScratch(num_tokens, num_experts))},
        outputs.stream());
    isa_shim::GatherGateGradients({.num_tokens = num_tokens,
                                   .max_active = max_active,
                                   .token_rows = token_rows,
                                   .d_row_gate = row_gate,
                                   .d_gates = outputs.Add<float>(pairs)},
                                  outputs.stream());
    for (const bool has_cutoff : {false, true}) {
      const std::vector<int64_t> bad_score = {
          has_cutoff && num_tokens > 0 ? 0 : -1};
      isa_shim::RoutingCounts(
          {.num_tokens = num_tokens,
           .num_experts = num_experts,
           .max_active = max_active,
           .has_cutoff = has_cutoff,
           .cutoff = 0.1f,
           .num_active = num_active,
           .gates = gates,
           .active_histogram = outputs.Add<int64_t>(num_experts + 1),
           .below_cutoff = outputs.Add<int64_t>(1),
           .scores = gates,
           .bad_score = outputs.In(bad_score),
           .bad_value = outputs.Add<double>(1)},
          outputs.stream());
    }
  });
}

void CheckBalanceLoss(int64_t num_experts) {
  Draws draws(7);
  std::vector<int64_t> counts;
  std::vector<double> sums;
  for (int64_t e = 0; e < num_experts; ++e) {
    counts.push_back(draws.Below(9));
    sums.push_back(1 + static_cast<double>(draws.Signed()));
  }
  const std::vector<double> z_sum = {3.5};
  CheckSchedules("balance loss", [&](Outputs& outputs) {
    isa_shim::BalanceLoss({.num_tokens = 9,
                           .num_experts = num_experts,
                           .aux_loss_coeff = 0.01,
                           .z_loss_coeff = 0.001,
                           .group_scale = 0.5,
                           .balance_counts = outputs.In(counts),
                           .probability_sums = outputs.In(sums),
                           .z_sum = outputs.In(z_sum),
                           .load_balance_loss = outputs.Add<double>(1),
                           .z_loss = outputs.Add<double>(1),
                           .d_probability = outputs.Add<float>(num_experts)},
                          outputs.stream());
  });
}

void CheckBudgetGradient(int64_t num_layers) {
  Draws draws(8);
  std::vector<double> shares, d_mean_active;
  for (int64_t l = 0; l < num_layers; ++l) {
    shares.push_back(1.0 / static_cast<double>(num_layers));
    d_mean_active.push_back(static_cast<double>(draws.Signed()));
  }
  CheckSchedules("budget gradient", [&](Outputs& outputs) {
    isa_shim::BudgetGradient(
        {.num_layers = num_layers,
         .spare_budget = 2.5,
         .shares = outputs.In(shares),
         .d_mean_active = outputs.In(d_mean_active),
         .d_budget_logits = outputs.Add<float>(num_layers)},
        outputs.stream());
  });
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 256, 300}) {
    CheckRouting(num_tokens, 1, 1);
    CheckRouting(num_tokens, 5, 3);
  }
  CheckRouting(300, 33, 16);   // several chunks
  CheckRouting(11, 256, 256);  // all experts
  CheckRouting(33 * kRoutePlanTokenBlock + 1, 33,
               1);  // more blocks than strips
  for (const int64_t num_experts : {1, 32, 256}) CheckBalanceLoss(num_experts);
  for (const int64_t num_layers : {1, 10}) CheckBudgetGradient(num_layers);
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
