// SPDX-License-Identifier: Apache-2.0
//
// Sums over many blocks of tokens, which CUDA kernels add in a tree and the CPU
// sequentially, have equal bits on data without rounding; on a simulated
// device. (verify covers generic data and few blocks.)
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/rmsnorm.h"
#include "kernels/router.h"
#include "property_tests/testing/simulated_case.h"

namespace softmoe::property_tests {
namespace {

using Doubles = std::vector<double>;
using Counts = std::vector<int64_t>;

// Rows of +-1 have rstd = 1, so d_weight is a sum of whole numbers.
TEST(DeviceTotals, RmsNormWeightGradientIsThatOfTheCpu) {
  for (const int64_t tokens : {1, 64 * 8, 64 * 8 + 1, 64 * 67}) {
    for (const int64_t d : {1, 32, 33}) {
      Floats x(tokens * d), rstd(tokens, 1.0f), weight(d, 1.0f), d_y(x.size());
      const auto signs = RandomIds(tokens * d, 2, 1, 1);
      const auto whole = RandomIds(tokens * d, 9, 1, 2);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(2 * signs[i] - 1);
        d_y[i] = static_cast<float>(whole[i] - 4);
      }
      ExpectTheBitsOfTheCpu(
          kernels::RmsNormBackward, SimulatedKernels().rmsnorm_backward,
          [&](const auto& backward) {
            Floats d_x(x.size()), d_weight(d, NAN);
            Floats scratch(kernels::RmsNormScratch(tokens, d), NAN);
            backward({tokens, d, x.data(), weight.data(), rstd.data(),
                      d_y.data(), d_x.data(), d_weight.data(), scratch.data()});
            return std::vector<Floats>{d_weight};
          });
    }
  }
}

// All tokens have the same scores, so every sum is k times one float.
struct EqualTokens {
  kernels::RouterShape shape = {};
  Floats scores;

  EqualTokens(kernels::RouterMode mode, int64_t tokens, int64_t experts) {
    shape.num_tokens = tokens;
    shape.num_experts = experts;
    shape.mode = mode;
    shape.balance = kernels::BalanceBasis::kSoftWeights;
    shape.mean_active = 1.0f;
    shape.temperature = 1.0f;
    shape.cutoff = 0.01f;
    shape.max_active = 1;
    shape.balance_top = 1;
    const Floats row = NormalFloats(experts, 1, 1);
    for (int64_t t = 0; t < tokens; ++t) {
      scores.insert(scores.end(), row.begin(), row.end());
    }
  }
};

// Written by RouterForward and read by RouterBackward.
struct Routed {
  Floats soft_weights, root, gates;
  std::vector<int32_t> num_active, selected;
  Doubles probability_sums, z_sum;
  Counts balance_counts, active_counts, bad_score;
  Doubles scratch;

  explicit Routed(const kernels::RouterShape& s)
      : soft_weights(s.num_tokens * s.num_experts),
        root(2 * s.num_tokens),
        gates(s.num_tokens * s.max_active),
        num_active(s.num_tokens),
        selected(s.num_tokens * s.max_active),
        probability_sums(s.num_experts, NAN),
        z_sum(1, NAN),
        balance_counts(s.num_experts, -9),
        active_counts(s.num_experts, -9),
        bad_score(1, -9),
        scratch(kernels::RouterScratch(s.num_tokens, s.num_experts)) {}

  kernels::RouterForwardArgs Args(const EqualTokens& c) {
    return {.shape = c.shape,
            .scores = c.scores.data(),
            .soft_weights = soft_weights.data(),
            .root = root.data(),
            .num_active = num_active.data(),
            .selected = selected.data(),
            .gates = gates.data(),
            .probability_sums = probability_sums.data(),
            .balance_counts = balance_counts.data(),
            .active_counts = active_counts.data(),
            .z_sum = z_sum.data(),
            .bad_score = bad_score.data(),
            .scratch = scratch.data()};
  }
  // All totals; counts are exact in double.
  std::vector<Doubles> Totals() const {
    return {probability_sums,
            {balance_counts.begin(), balance_counts.end()},
            {active_counts.begin(), active_counts.end()},
            {static_cast<double>(bad_score[0])}};
  }
};

constexpr int64_t kTokens[] = {1, 64 * 8, 64 * 8 + 1, 64 * 67 + 5};

TEST(DeviceTotals, RouterSumsAreThoseOfTheCpu) {
  for (const auto mode :
       {kernels::RouterMode::kSparse, kernels::RouterMode::kSoft}) {
    for (const int64_t tokens : kTokens) {
      for (const int64_t experts : {2, 10, 11}) {  // 8, 32 and 35 columns
        const EqualTokens c(mode, tokens, experts);
        ExpectTheBitsOfTheCpu(kernels::RouterForward,
                              SimulatedKernels().router_forward,
                              [&](const auto& forward) {
                                Routed routed(c.shape);
                                forward(routed.Args(c));
                                // A float's square has 48 bits, so sums over 32
                                // tokens are exact.
                                auto totals = routed.Totals();
                                if (tokens <= 32)
                                  totals.push_back(routed.z_sum);
                                return totals;
                              });
      }
    }
  }
}

// Names the first of several bad scores, whatever its block.
TEST(DeviceTotals, RouterNamesTheFirstBadScoreOfManyBlocks) {
  EqualTokens c(kernels::RouterMode::kSparse, 64 * 67, 3);
  const int64_t size = static_cast<int64_t>(c.scores.size());
  for (const int64_t bad :
       {size - 1, int64_t{64 * 35 * 3}, int64_t{64 * 34 * 3}, int64_t{5}}) {
    c.scores[bad] = NAN;  // and earlier ones stay bad
    const auto got = RunInTheSimulator([&] {
      Routed routed(c.shape);
      SimulatedKernels().router_forward(routed.Args(c));
      return std::vector<Counts>{routed.bad_score};
    });
    EXPECT_EQ(got[0][0], bad);
  }
}

TEST(DeviceTotals, RouterGradientOfMeanActiveIsThatOfTheCpu) {
  for (const int64_t tokens : kTokens) {
    const EqualTokens c(kernels::RouterMode::kSoft, tokens, 5);
    Routed routed(c.shape);
    ThreadPool pool(1);
    kernels::RouterForward(routed.Args(c), pool);
    const Floats d_gates(tokens, 0.75f);
    ExpectTheBitsOfTheCpu(
        kernels::RouterBackward, SimulatedKernels().router_backward,
        [&](const auto& backward) {
          Floats d_scores(c.scores.size());
          Doubles d_mean_active(1, NAN), scratch = routed.scratch;
          backward({.shape = c.shape,
                    .scores = c.scores.data(),
                    .soft_weights = routed.soft_weights.data(),
                    .root = routed.root.data(),
                    .selected = routed.selected.data(),
                    .d_gates = d_gates.data(),
                    .d_probability = nullptr,
                    .z_scale = 0.0f,
                    .d_scores = d_scores.data(),
                    .d_mean_active = d_mean_active.data(),
                    .scratch = scratch.data()});
          return std::vector<Doubles>{d_mean_active};
        });
  }
}

}  // namespace
}  // namespace softmoe::property_tests
