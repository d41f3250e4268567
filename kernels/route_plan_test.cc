// SPDX-License-Identifier: Apache-2.0
#include "kernels/route_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

constexpr int32_t kUnwritten = -9;

struct Routing {
  int64_t num_tokens, num_experts, max_active;
  std::vector<int32_t> num_active, selected;
  std::vector<float> gates;
};

struct Plan {
  std::vector<int32_t> expert_offsets, row_token, token_rows;
  std::vector<float> row_gate;
  bool operator==(const Plan&) const = default;
};

// Each expert is active with the given probability, up to the cap.
Routing MakeRouting(int64_t num_tokens, int64_t num_experts, int64_t max_active,
                    float probability) {
  Routing r{num_tokens, num_experts, max_active, {}, {}, {}};
  const auto draws = RandomFloats(num_tokens * num_experts, 1);
  const auto values = RandomFloats(num_tokens * max_active, 2);
  for (int64_t t = 0; t < num_tokens; ++t) {
    int32_t count = 0;
    for (int64_t e = 0; e < num_experts && count < max_active; ++e) {
      if (0.5f * (draws[t * num_experts + e] + 1) < probability) {
        r.selected.push_back(static_cast<int32_t>(e));
        ++count;
      }
    }
    r.num_active.push_back(count);
    for (; count < max_active; ++count) r.selected.push_back(-1);
  }
  r.gates = values;
  return r;
}

Plan Build(const Routing& r, int threads) {
  const int64_t most = r.num_tokens * r.max_active;
  Plan plan;
  plan.expert_offsets.assign(r.num_experts + 2, kUnwritten);
  plan.row_token.assign(most + 1, kUnwritten);
  plan.row_gate.assign(most + 1, kUnwritten);
  plan.token_rows.assign(most + 1, kUnwritten);
  std::vector<int32_t> scratch(
      RoutePlanScratch(r.num_tokens, r.num_experts) + 1, kUnwritten);
  ThreadPool pool(threads);
  BuildRoutePlan({r.num_tokens, r.num_experts, r.max_active,
                  r.num_active.data(), r.selected.data(), r.gates.data(),
                  plan.expert_offsets.data(), plan.row_token.data(),
                  plan.row_gate.data(), plan.token_rows.data(), scratch.data()},
                 pool);
  EXPECT_EQ(scratch.back(), kUnwritten);
  return plan;
}

// The definition: walk experts, then tokens.
Plan Expected(const Routing& r) {
  const int64_t most = r.num_tokens * r.max_active;
  Plan plan;
  plan.row_token.assign(most + 1, kUnwritten);
  plan.row_gate.assign(most + 1, kUnwritten);
  plan.token_rows.assign(most, -1);
  int32_t row = 0;
  for (int64_t e = 0; e < r.num_experts; ++e) {
    plan.expert_offsets.push_back(row);
    for (int64_t t = 0; t < r.num_tokens; ++t) {
      for (int64_t i = 0; i < r.num_active[t]; ++i) {
        const int64_t at = t * r.max_active + i;
        if (r.selected[at] != e) continue;
        plan.row_token[row] = static_cast<int32_t>(t);
        plan.row_gate[row] = r.gates[at];
        plan.token_rows[at] = row;
        ++row;
      }
    }
  }
  plan.expert_offsets.push_back(row);
  plan.expert_offsets.push_back(kUnwritten);
  plan.token_rows.push_back(kUnwritten);
  return plan;
}

TEST(RoutePlan, SortsByExpertThenTokenForAnyThreads) {
  for (int64_t tokens : {0, 1, 255, 256, 257, 1000}) {
    for (int64_t experts : {1, 5, 32}) {
      for (int64_t width : {1, 2, 4}) {
        if (width > experts) continue;
        for (float probability : {0.0f, 0.1f, 1.0f}) {
          const Routing r = MakeRouting(tokens, experts, width, probability);
          const Plan expected = Expected(r);
          for (int threads : {1, 3, 4}) {
            EXPECT_EQ(Build(r, threads), expected)
                << tokens << " " << experts << " " << width;
          }
        }
      }
    }
  }
}

// A row's gradient goes back to the place that its gate came from.
TEST(GatherGateGradients, IsTheInverseOfThePlan) {
  for (int64_t tokens : {0, 1, 257, 1000}) {
    const Routing r = MakeRouting(tokens, 5, 3, 0.4f);
    const Plan plan = Expected(r);
    std::vector<float> d_gates(tokens * 3 + 1, kUnwritten);
    ThreadPool pool(3);
    GatherGateGradients({.num_tokens = tokens,
                         .max_active = 3,
                         .token_rows = plan.token_rows.data(),
                         .d_row_gate = plan.row_gate.data(),
                         .d_gates = d_gates.data()},
                        pool);
    for (int64_t i = 0; i < tokens * 3; ++i) {
      const bool active = i % 3 < r.num_active[i / 3];
      EXPECT_EQ(d_gates[i], active ? r.gates[i] : 0.0f) << i;
    }
    EXPECT_EQ(d_gates.back(), kUnwritten);
  }
}

TEST(RoutePlan, LevelsAgree) {
  const Routing r = MakeRouting(700, 16, 3, 0.2f);
  SelectIsa("v3");
  const Plan narrow = Build(r, 2);
  SelectIsa("");
  EXPECT_EQ(Build(r, 2), narrow);
}

}  // namespace
}  // namespace softmoe::kernels
