// SPDX-License-Identifier: Apache-2.0
#include "kernels/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "kernels/testing/router_testing.h"

namespace softmoe::kernels {
namespace {

std::vector<Isa> Levels() {
  std::vector<Isa> levels = {Isa::kV3};
  if (IsaAvailable(Isa::kV4)) levels.push_back(Isa::kV4);
  return levels;
}

// Largest error in units of its bound over all rows: every output of a case
// against the naive router.
double CheckForward(const RouterShape& shape, const std::vector<float>& scores,
                    const RouterOutputs& out) {
  SCOPED_TRACE(Describe(shape));
  ExpectCanaries(shape, out);
  EXPECT_EQ(out.bad_score, -1);
  const int64_t n = shape.num_experts, width = shape.max_active;
  const bool sparse = shape.mode == RouterMode::kSparse;
  const bool softmax_basis =
      sparse || shape.balance == BalanceBasis::kScoresSoftmax;
  double worst = 0, z_sum = 0, z_bound = 0;
  std::vector<double> sums(n), sum_bounds(n);
  std::vector<int64_t> active_counts(n), balance_counts(n);
  for (int64_t t = 0; t < shape.num_tokens; ++t) {
    SCOPED_TRACE("row " + std::to_string(t));
    const float* r = scores.data() + t * n;
    const float* p = out.soft_weights.data() + t * n;
    const NaiveRow naive = SolveNaively(shape, r);
    for (int64_t e = 0; e < n; ++e) {
      const double error = std::abs(p[e] - naive.p[e]);
      EXPECT_LE(error, naive.p_error[e])
          << "expert " << e << " got " << p[e] << " naive " << naive.p[e];
      worst = std::max(worst, error / naive.p_error[e]);
    }
    // The scores decide the cap exactly, the kernel's own p the cutoff.
    std::set<int> expected;
    for (int64_t i = 0; i < width; ++i) {
      const int e = naive.order[i];
      if (sparse || p[e] > shape.cutoff) expected.insert(e);
    }
    if (expected.empty() && shape.fallback_top1) {
      expected.insert(naive.order[0]);
    }
    EXPECT_EQ(out.num_active[t], static_cast<int32_t>(expected.size()));
    int64_t i = 0;
    for (int e : expected) {
      EXPECT_EQ(out.selected[t * width + i], e);
      EXPECT_EQ(out.gates[t * width + i], p[e]);
      ++active_counts[e];
      ++i;
    }
    for (; i < width; ++i) {
      EXPECT_EQ(out.selected[t * width + i], -1);
      EXPECT_EQ(out.gates[t * width + i], 0.0f);
    }
    if (softmax_basis && !sparse) {
      for (int64_t j = 0; j < shape.balance_top; ++j) {
        ++balance_counts[naive.order[j]];
      }
    } else {
      for (int e : expected) ++balance_counts[e];
    }
    // The basis' own error, and double rounding of a sum of num_tokens terms.
    for (int64_t e = 0; e < n; ++e) {
      const double basis =
          softmax_basis ? naive.softmax[e] : naive.p[e] / shape.mean_active;
      const double error =
          sparse ? naive.p_error[e]
          : softmax_basis
              ? naive.softmax[e] * 0x1p-24 *
                        (n / 4.0 + 16 +
                         std::abs(double{r[e]} - r[naive.order[0]])) +
                    1.2e-38
              : naive.p_error[e] / shape.mean_active;
      sums[e] += basis;
      sum_bounds[e] += error + shape.num_tokens * 0x1p-52 * basis;
    }
    // logsumexp: one rounding of the result, of log, of s_1 + log; the sum's
    // relative error is log's absolute one.
    const double lse_error =
        0x1p-24 * (2 * std::abs(naive.log_sum_exp) + n / 4.0 + 16);
    z_sum += naive.log_sum_exp * naive.log_sum_exp;
    z_bound +=
        2 * std::abs(naive.log_sum_exp) * lse_error + lse_error * lse_error +
        shape.num_tokens * 0x1p-52 * naive.log_sum_exp * naive.log_sum_exp;
  }
  for (int64_t e = 0; e < n; ++e) {
    EXPECT_NEAR(out.probability_sums[e], sums[e], sum_bounds[e]) << e;
    EXPECT_EQ(out.active_counts[e], active_counts[e]) << e;
    EXPECT_EQ(out.balance_counts[e], balance_counts[e]) << e;
  }
  EXPECT_NEAR(out.z_sum, z_sum, z_bound);
  return worst;
}

struct Case {
  int64_t num_experts;
  float mean_active;
};

// Fractional and integer k, near 0, near num_experts, ceil(2k) at and above
// num_experts, every compiled selection size and the general one.
const Case kCases[] = {
    {32, 1.0f},    {32, 1.5f},   {32, 2.0f},  {32, 2.00001f}, {32, 2.5f},
    {32, 3.0f},    {32, 4.0f},   {32, 7.3f},  {32, 16.0f},    {32, 31.0f},
    {32, 31.999f}, {32, 1e-6f},  {8, 1.0f},   {8, 1.5f},      {8, 4.0f},
    {8, 7.5f},     {2, 1.0f},    {2, 0.3f},   {2, 1.9f},      {1, 0.4f},
    {1, 0.7f},     {3, 1.5f},    {5, 2.5f},   {17, 1.7f},     {33, 2.0f},
    {64, 2.0f},    {100, 12.0f}, {256, 1.0f}, {256, 2.0f},    {256, 20.5f},
    {256, 250.0f},
};

TEST(RouterForward, SoftAgreesWithBisectionWithinTheDerivedBound) {
  double worst = 0;
  for (const Case& c : kCases) {
    for (float temperature : {5.0f, 1.0f, 0.1f}) {
      const int64_t tokens = c.num_experts > 64 ? 19 : 37;
      RouterShape shape = SoftShape(tokens, c.num_experts, c.mean_active,
                                    temperature, 1.2, 2.0);
      const auto scores = MakeScores(tokens, c.num_experts, 0.5f, 1);
      for (Isa isa : Levels()) {
        worst = std::max(
            worst,
            CheckForward(shape, scores, RunForward(shape, scores, 2, isa)));
      }
    }
  }
  // A bound that no error comes near would prove nothing.
  EXPECT_GT(worst, 1e-3);
  RecordProperty("worst_error_over_bound", std::to_string(worst));
}

TEST(RouterForward, CutoffCapFallbackAndBalanceBasisVary) {
  for (double tau : {0.0, 0.5, 1.1, 1.8, 30.0}) {
    for (double expansion : {1.0, 2.0, 4.0, 32.0}) {
      for (BalanceBasis basis :
           {BalanceBasis::kSoftWeights, BalanceBasis::kScoresSoftmax}) {
        for (bool fallback : {false, true}) {
          RouterShape shape = SoftShape(41, 32, 1.5f, 1.0f, tau, expansion);
          shape.balance = basis;
          shape.fallback_top1 = fallback;
          const auto scores = MakeScores(41, 32, 0.7f, 2);
          for (Isa isa : Levels()) {
            CheckForward(shape, scores, RunForward(shape, scores, 1, isa));
          }
        }
      }
    }
  }
}

TEST(RouterForward, SparseTakesTheLargestOfTheSoftmax) {
  for (int64_t n : {1, 2, 7, 8, 32, 40, 256}) {
    for (int64_t k : {1, 2, 3, 4, 7, 32}) {
      if (k > n) continue;
      RouterShape shape = {};
      shape.num_tokens = 45;
      shape.num_experts = n;
      shape.mode = RouterMode::kSparse;
      shape.balance = BalanceBasis::kScoresSoftmax;
      shape.max_active = shape.balance_top = k;
      const auto scores = MakeScores(45, n, 1.0f, 3);
      for (Isa isa : Levels()) {
        CheckForward(shape, scores, RunForward(shape, scores, 3, isa));
      }
    }
  }
}

// Exact data: every value that decides is exact, so results are known bits.
TEST(RouterForward, ExactDataGivesExactResults) {
  for (Isa isa : Levels()) {
    // Equal scores: softmax is 1/n, and the lowest indices win.
    RouterShape shape = {};
    shape.num_tokens = 5;
    shape.num_experts = 32;
    shape.mode = RouterMode::kSparse;
    shape.max_active = shape.balance_top = 3;
    auto out = RunForward(shape, std::vector<float>(5 * 32, 0.25f), 1, isa);
    for (int i = 0; i < 5 * 32; ++i) {
      EXPECT_EQ(out.soft_weights[i], 1.0f / 32);
    }
    for (int i = 0; i < 15; ++i) EXPECT_EQ(out.selected[i], i % 3);
    for (int e = 0; e < 32; ++e) EXPECT_EQ(out.probability_sums[e], 5.0 / 32);

    // Huge gaps and integer k: a hard top-k, at 1 and 0.
    shape = SoftShape(2, 8, 3.0f, 1.0f, 1.0, 2.0);
    std::vector<float> scores = {-9e4f, 3e5f, -8e4f, 1e5f,
                                 -7e4f, 2e5f, -9e4f, -1e5f};
    for (int i = 0; i < 8; ++i) scores.push_back(-3e38f * ((i & 1) ? 1 : -1));
    out = RunForward(shape, scores, 1, isa);
    const float hard[8] = {0, 1, 0, 1, 0, 1, 0, 0};
    for (int e = 0; e < 8; ++e) EXPECT_EQ(out.soft_weights[e], hard[e]);
    EXPECT_EQ(out.num_active[0], 3);
    // As many experts are active as lie above a gap that overflows.
    const RouterShape cut = SoftShape(1, 8, 4.0f, 1.0f, 1.0, 1.0);
    const auto whole = RunForward(
        cut, std::vector<float>(scores.begin() + 8, scores.end()), 1, isa);
    for (int e = 0; e < 8; ++e) {
      EXPECT_EQ(whole.soft_weights[e], e % 2 == 0 ? 1.0f : 0.0f);
    }
    // k = 3 of four equal largest scores: 3/4 each, a logarithm and an
    // exponential of an ulp.
    for (int e = 0; e < 8; e += 2) {
      EXPECT_NEAR(out.soft_weights[8 + e], 0.75f, 4 * 0x1p-24);
      EXPECT_EQ(out.soft_weights[8 + e + 1], 0.0f);
    }
  }
}

TEST(RouterForward, EqualScoresGetEqualWeights) {
  const RouterShape shape = SoftShape(90, 32, 1.5f, 0.5f, 1.1, 2.0);
  const auto scores = MakeScores(90, 32, 0.5f, 4);
  const auto out = RunForward(shape, scores, 1, ActiveIsa());
  int ties = 0;
  for (int64_t t = 0; t < 90; ++t) {
    for (int64_t a = 32 * t; a < 32 * t + 32; ++a) {
      for (int64_t b = a + 1; b < 32 * t + 32; ++b) {
        if (scores[a] != scores[b]) continue;
        EXPECT_EQ(out.soft_weights[a], out.soft_weights[b]);
        ++ties;
      }
    }
  }
  EXPECT_GT(ties, 1000);
}

TEST(RouterForward, NeitherThreadsNorLevelsNorNeighboursChangeABit) {
  for (float mean_active : {1.5f, 20.0f}) {
    RouterShape shape = SoftShape(333, 32, mean_active, 1.0f, 1.2, 2.0);
    shape.balance = BalanceBasis::kScoresSoftmax;
    const auto scores = MakeScores(333, 32, 0.5f, 5);
    const auto one = RunForward(shape, scores, 1, Isa::kV3);
    for (int threads : {3, 4}) {
      EXPECT_EQ(one, RunForward(shape, scores, threads, Isa::kV3));
    }
    if (IsaAvailable(Isa::kV4)) {
      // Rows are computed lane by lane and summed row by row: equal bits.
      EXPECT_EQ(one, RunForward(shape, scores, 3, Isa::kV4));
    }
    shape.num_tokens = 1;
    for (int64_t t : {0, 5, 100, 332}) {
      const std::vector<float> row(scores.begin() + 32 * t,
                                   scores.begin() + 32 * t + 32);
      const auto alone = RunForward(shape, row, 1, ActiveIsa());
      EXPECT_EQ(std::memcmp(alone.soft_weights.data(),
                            one.soft_weights.data() + 32 * t, 32 * 4),
                0);
      EXPECT_EQ(alone.root[0], one.root[2 * t]);
      EXPECT_EQ(alone.root[1], one.root[2 * t + 1]);
    }
  }
}

TEST(RouterForward, ReportsTheFirstNonFiniteScore) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t n : {5, 32}) {
    const RouterShape shape = SoftShape(200, n, 1.5f, 1.0f, 1.2, 2.0);
    const auto clean = MakeScores(200, n, 0.5f, 6);
    for (float bad : {infinity, -infinity, nan}) {
      for (int64_t at : {int64_t{0}, 7 * n + 2, 100 * n + 1, 200 * n - 1}) {
        auto scores = clean;
        scores[at] = bad;
        scores[200 * n - 1] = nan;
        for (Isa isa : Levels()) {
          const auto out = RunForward(shape, scores, 4, isa);
          EXPECT_EQ(out.bad_score, at);
          ExpectCanaries(shape, out);
        }
      }
    }
  }
}

TEST(RouterForward, NoTokensGiveZeroSums) {
  const RouterShape shape = SoftShape(0, 8, 1.5f, 1.0f, 1.2, 2.0);
  const auto out = RunForward(shape, {}, 2, ActiveIsa());
  for (int e = 0; e < 8; ++e) EXPECT_EQ(out.probability_sums[e], 0.0);
  EXPECT_EQ(out.z_sum, 0.0);
  EXPECT_EQ(out.bad_score, -1);
}

}  // namespace
}  // namespace softmoe::kernels
