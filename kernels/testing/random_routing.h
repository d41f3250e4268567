// SPDX-License-Identifier: Apache-2.0
//
// random_routing.h - a random routing of tokens to experts, as a router selects
// it and as a plan of rows holds it.
#ifndef SOFTMOE_KERNELS_TESTING_RANDOM_ROUTING_H_
#define SOFTMOE_KERNELS_TESTING_RANDOM_ROUTING_H_

#include <cstdint>
#include <vector>

#include "core/testing/random_test_util.h"
#include "kernels/expert_mlp.h"

namespace softmoe::kernels {

// Tokens have 0 to max_active experts, none of them among the last num_idle.
struct RandomRouting {
  RandomRouting(int64_t num_tokens, int64_t num_experts, int64_t max_active,
                int64_t num_idle = 0)
      : num_tokens(num_tokens),
        num_experts(num_experts),
        max_active(max_active) {
    Draws draws(5);
    for (int64_t t = 0; t < num_tokens; ++t) {
      int64_t left = draws.Integer(0, max_active);
      num_active.push_back(static_cast<int32_t>(left));
      for (int64_t e = 0; e < num_experts - num_idle; ++e) {
        // Each set of `left` of the experts from e on is equally likely.
        if (draws.Integer(e + 1, num_experts - num_idle) - e > left) continue;
        selected.push_back(static_cast<int32_t>(e));
        gates.push_back(static_cast<float>(2 * draws.Uniform() - 1));
        --left;
      }
      selected.resize(static_cast<size_t>((t + 1) * max_active), -1);
      gates.resize(selected.size(), 0.0f);
    }
    token_rows.resize(selected.size(), -1);
    for (int64_t e = 0; e < num_experts; ++e) {
      for (size_t i = 0; i < selected.size(); ++i) {
        if (selected[i] != e) continue;
        token_rows[i] = static_cast<int32_t>(row_token.size());
        row_token.push_back(static_cast<int32_t>(i / max_active));
        row_gate.push_back(gates[i]);
      }
      expert_offsets.push_back(static_cast<int32_t>(row_token.size()));
    }
  }

  int64_t num_routed() const { return static_cast<int64_t>(row_token.size()); }

  // A plan that points to this object's arrays.
  RoutePlan Plan() const {
    return {.num_tokens = num_tokens,
            .num_experts = num_experts,
            .num_routed = num_routed(),
            .max_active = max_active,
            .expert_offsets = expert_offsets.data(),
            .row_token = row_token.data(),
            .row_gate = row_gate.data(),
            .token_rows = token_rows.data()};
  }

  int64_t num_tokens, num_experts, max_active;
  std::vector<int32_t> num_active, selected;  // of RouterForward
  std::vector<float> gates;
  std::vector<int32_t> expert_offsets = {0}, row_token, token_rows;
  std::vector<float> row_gate;
};

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_RANDOM_ROUTING_H_
