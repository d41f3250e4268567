// SPDX-License-Identifier: Apache-2.0
//
// Row plans, counts and balance losses of the CUDA kernels on a simulated
// device have the CPU's bits, which kernels/ tests against definitions and
// model_property_test.cc against the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/balance_loss.h"
#include "kernels/budget_gradient.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/route_plan.h"
#include "kernels/routing_counts.h"
#include "property_tests/testing/generators.h"
#include "property_tests/testing/simulated_case.h"

namespace softmoe::property_tests {
namespace {

using Ints = std::vector<int32_t>;

// Tokens with up to max_active experts each, in ascending order.
struct Routing {
  int64_t num_tokens, num_experts, max_active;
  Ints num_active, selected;
  Floats gates;

  // crowded: all tokens choose among the first experts.
  Routing(int64_t tokens, int64_t experts, int64_t most, bool crowded,
          uint64_t seed)
      : num_tokens(tokens),
        num_experts(experts),
        max_active(most),
        num_active(RandomIds(tokens, most + 1, seed, 1)),
        gates(NormalFloats(tokens * most, seed, 2)) {
    const int64_t choice = crowded ? most : experts;
    const Ints draws = RandomIds(tokens * choice, 1 << 20, seed, 3);
    for (int64_t t = 0; t < tokens; ++t) {
      // Draws the needed number from the remaining experts, with equal chances.
      int64_t needed = num_active[t];
      for (int64_t e = 0; e < choice; ++e) {
        if (draws[t * choice + e] % (choice - e) >= needed) continue;
        selected.push_back(static_cast<int32_t>(e));
        --needed;
      }
      selected.resize((t + 1) * most, -1);
    }
  }
  int64_t num_routed() const {
    return std::ranges::count_if(selected, [](int32_t e) { return e >= 0; });
  }
};

Routing AnyRouting() {
  const int64_t tokens = *rc::gen::element<int64_t>(0, 1, 255, 256, 257, 600);
  const int64_t experts = *rc::gen::element<int64_t>(1, 2, 31, 32, 33, 256);
  const int64_t most = *Uniform(1, std::min<int64_t>(experts, 20) + 1);
  return {tokens, experts, most, *rc::gen::arbitrary<bool>(),
          *rc::gen::inRange<uint64_t>(0, 1000)};
}

struct Plan {
  Ints expert_offsets, row_token, token_rows;
  Floats row_gate;

  std::vector<Ints> Bits() const {
    Ints gate_bits(row_gate.size());
    std::ranges::transform(row_gate, gate_bits.begin(),
                           [](float x) { return std::bit_cast<int32_t>(x); });
    return {expert_offsets, row_token, token_rows, gate_bits};
  }
};

// Calls build(args); elements that must not be written keep -9.
template <typename Arrays, typename Build>
Plan BuildPlan(const Routing& r, Arrays& arrays, const Build& build) {
  const int64_t pairs = r.num_tokens * r.max_active;
  Plan plan = {Ints(r.num_experts + 1, -9), Ints(pairs, -9), Ints(pairs, -9),
               Floats(pairs, -9)};
  Ints scratch(kernels::RoutePlanScratch(r.num_tokens, r.num_experts));
  build({r.num_tokens, r.num_experts, r.max_active, arrays.In(r.num_active),
         arrays.In(r.selected), arrays.In(r.gates),
         arrays.InOut(plan.expert_offsets), arrays.InOut(plan.row_token),
         arrays.InOut(plan.row_gate), arrays.InOut(plan.token_rows),
         arrays.InOut(scratch)});
  return plan;
}

void ExpectThePlanOfTheCpu(const Routing& r) {
  ExpectTheBitsOfTheCpu(kernels::BuildRoutePlan,
                        kernels::isa_shim::BuildRoutePlan,
                        [&](auto& arrays, const auto& build) {
                          return BuildPlan(r, arrays, build).Bits();
                        });
}

RC_GTEST_PROP(RoutingKernels, PlanIsThatOfTheCpu, ()) {
  ExpectThePlanOfTheCpu(AnyRouting());
}

// Strips of the scan take several blocks of tokens, from all experts or few.
TEST(RoutingKernels, PlanOfManyBlocksIsThatOfTheCpu) {
  for (const int64_t blocks : {8, 9, 15, 70}) {
    ExpectThePlanOfTheCpu({blocks * kernels::kRoutePlanTokenBlock + 3, 33, 1,
                           /*crowded=*/false, 7});
  }
}

RC_GTEST_PROP(RoutingKernels, GateGradientsAreThoseOfTheCpu, ()) {
  const Routing r = AnyRouting();
  ThreadPool pool(1);
  HostArrays host;
  const Ints token_rows =
      BuildPlan(r, host, [&](const kernels::BuildRoutePlanArgs& args) {
        kernels::BuildRoutePlan(args, pool);
      }).token_rows;
  const Floats d_row_gate = NormalFloats(r.num_routed(), 1, 4);
  ExpectTheBitsOfTheCpu(
      kernels::GatherGateGradients, kernels::isa_shim::GatherGateGradients,
      [&](auto& arrays, const auto& gather) {
        Floats d_gates(token_rows.size(), NAN);
        gather({r.num_tokens, r.max_active, arrays.In(token_rows),
                arrays.In(d_row_gate), arrays.InOut(d_gates)});
        return std::vector<Floats>{d_gates};
      });
}

RC_GTEST_PROP(RoutingKernels, CountsAreThoseOfTheCpu, ()) {
  Routing r = AnyRouting();
  constexpr float kCutoff = 0.5f;
  for (size_t i = 0; i < r.gates.size(); i += 3) r.gates[i] = kCutoff;
  const bool has_cutoff = *rc::gen::arbitrary<bool>();
  ExpectTheBitsOfTheCpu(
      kernels::RoutingCounts, kernels::isa_shim::RoutingCounts,
      [&](auto& arrays, const auto& count) {
        std::vector<int64_t> histogram(r.num_experts + 1, -9), below(1, -9);
        count({r.num_tokens, r.num_experts, r.max_active, has_cutoff, kCutoff,
               arrays.In(r.num_active), arrays.In(r.gates),
               arrays.InOut(histogram), arrays.InOut(below)});
        return std::vector<std::vector<int64_t>>{histogram, below};
      });
}

RC_GTEST_PROP(RoutingKernels, BudgetGradientIsThatOfTheCpu, ()) {
  const int64_t layers = *rc::gen::element<int64_t>(1, 2, 10, 96);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const Floats floats = NormalFloats(layers, seed, 1);
  const Floats gradient = NormalFloats(layers, seed, 2);
  std::vector<double> shares;
  for (const float x : floats) shares.push_back(std::abs(x) / 3.0);
  const std::vector<double> d_mean_active(gradient.begin(), gradient.end());
  ExpectTheBitsOfTheCpu(
      kernels::BudgetGradient, kernels::isa_shim::BudgetGradient,
      [&](auto& arrays, const auto& compute) {
        Floats d_budget_logits(layers, NAN);
        compute({.num_layers = layers,
                 .spare_budget = 1.7,
                 .shares = arrays.In(shares),
                 .d_mean_active = arrays.In(d_mean_active),
                 .d_budget_logits = arrays.InOut(d_budget_logits)});
        return std::vector<Floats>{d_budget_logits};
      });
}

RC_GTEST_PROP(RoutingKernels, BalanceLossIsThatOfTheCpu, ()) {
  const int64_t experts = *rc::gen::element<int64_t>(1, 2, 32, 256);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  // One case in four has no load at all.
  const int64_t most = *rc::gen::element<int64_t>(1, 2, 100, 10000);
  const Ints draws = RandomIds(experts, most, seed, 1);
  const std::vector<int64_t> counts(draws.begin(), draws.end());
  const Floats floats = NormalFloats(experts, seed, 2);
  const std::vector<double> sums(floats.begin(), floats.end());
  const std::vector<double> z_sum = {*rc::gen::element(0.0, 0.1, 1e4)};
  ExpectTheBitsOfTheCpu(
      kernels::BalanceLoss, kernels::isa_shim::BalanceLoss,
      [&](auto& arrays, const auto& compute) {
        std::vector<double> balance(1, NAN), z(1, NAN);
        Floats d_probability(experts, NAN);
        compute({.num_tokens = 1000,
                 .num_experts = experts,
                 .aux_loss_coeff = 0.01,
                 .z_loss_coeff = 0.001,
                 .group_scale = 0.3,
                 .balance_counts = arrays.In(counts),
                 .probability_sums = arrays.In(sums),
                 .z_sum = arrays.In(z_sum),
                 .load_balance_loss = arrays.InOut(balance),
                 .z_loss = arrays.InOut(z),
                 .d_probability = arrays.InOut(d_probability)});
        return std::vector<std::vector<double>>{
            balance, z, {d_probability.begin(), d_probability.end()}};
      });
}

}  // namespace
}  // namespace softmoe::property_tests
