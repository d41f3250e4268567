// SPDX-License-Identifier: Apache-2.0
//
// What verify, op=router and op=lapsum, does not prove: the score that is named
// when one is not finite, equal bits for equal scores, and gaps between scores
// that overflow.
#include "kernels/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/isa.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Routed {
  std::vector<float> weights;  // [tokens, experts]
  int64_t bad_score = -2;
};

// Soft routing to a cap of 2 k, at the selected level.
Routed Route(const std::vector<float>& scores, int64_t num_experts,
             float mean_active, float temperature = 1) {
  RouterShape shape = {};
  shape.num_experts = num_experts;
  shape.num_tokens = static_cast<int64_t>(scores.size()) / num_experts;
  shape.mode = RouterMode::kSoft;
  shape.balance = BalanceBasis::kSoftWeights;
  shape.mean_active = mean_active;
  shape.temperature = temperature;
  shape.cutoff = mean_active / static_cast<float>(num_experts);
  shape.max_active = static_cast<int64_t>(std::ceil(2 * mean_active));
  shape.balance_top = static_cast<int64_t>(std::ceil(mean_active));
  const int64_t n = shape.num_tokens, slots = n * shape.max_active;
  Routed routed;
  routed.weights.resize(scores.size());
  std::vector<float> root(2 * n), gates(slots);
  std::vector<int32_t> num_active(n), selected(slots);
  std::vector<double> sums(num_experts);
  std::vector<double> scratch(RouterScratch(n, num_experts));
  std::vector<int64_t> balance_counts(num_experts), active_counts(num_experts);
  double z_sum = 0;
  ThreadPool pool(4);
  RouterForward({.shape = shape,
                 .scores = scores.data(),
                 .soft_weights = routed.weights.data(),
                 .root = root.data(),
                 .num_active = num_active.data(),
                 .selected = selected.data(),
                 .gates = gates.data(),
                 .probability_sums = sums.data(),
                 .balance_counts = balance_counts.data(),
                 .active_counts = active_counts.data(),
                 .z_sum = &z_sum,
                 .bad_score = &routed.bad_score,
                 .scratch = scratch.data()},
                pool);
  return routed;
}

class RouterAtLevel : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this CPU lacks the level";
    SelectIsa(IsaName(GetParam()));
  }
  void TearDown() override { SelectIsa(""); }
};
INSTANTIATE_TEST_SUITE_P(Levels, RouterAtLevel,
                         testing::Values(Isa::kV3, Isa::kV4),
                         [](const auto& info) { return IsaName(info.param); });

TEST_P(RouterAtLevel, NamesTheFirstScoreThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t n : {5, 32}) {
    for (const float bad : {infinity, -infinity, nan}) {
      for (const int64_t at :
           {int64_t{0}, 7 * n + 2, 100 * n + 1, 200 * n - 1}) {
        std::vector<float> scores = RandomFloats(200 * n, 1);
        scores[at] = bad;
        scores[200 * n - 1] = nan;
        EXPECT_EQ(Route(scores, n, 1.5f).bad_score, at);
      }
    }
  }
}

TEST_P(RouterAtLevel, GivesEqualScoresEqualWeights) {
  std::vector<float> scores = RandomFloats(90 * 32, 2);
  for (float& score : scores) score = std::round(4 * score);
  const std::vector<float> weights = Route(scores, 32, 1.5f, 0.5f).weights;
  for (int64_t t = 0; t < 90; ++t) {
    for (int64_t a = 32 * t; a < 32 * t + 32; ++a) {
      for (int64_t b = a + 1; b < 32 * t + 32; ++b) {
        if (scores[a] != scores[b]) continue;
        EXPECT_EQ(weights[a], weights[b]);
      }
    }
  }
}

// Experts above the gap have weight 1, or share k evenly: up to a logarithm and
// an exponential of an ulp each.
TEST_P(RouterAtLevel, AGapThatOverflowsIsAHardTopK) {
  std::vector<float> scores;
  for (int i = 0; i < 8; ++i) scores.push_back(i % 2 == 0 ? 3e38f : -3e38f);
  const std::vector<float> all = Route(scores, 8, 4).weights;
  const std::vector<float> some = Route(scores, 8, 3).weights;
  for (int e = 0; e < 8; e += 2) {
    EXPECT_EQ(all[e], 1);
    EXPECT_EQ(all[e + 1], 0);
    EXPECT_NEAR(some[e], 0.75f, 4 * 0x1p-24);
    EXPECT_EQ(some[e + 1], 0);
  }
}

}  // namespace
}  // namespace softmoe::kernels
