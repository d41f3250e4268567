// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/comparator.h"
#include "kernels/router.h"
#include "kernels/testing/router_testing.h"

namespace softmoe::kernels {
namespace {

constexpr double kU = 0x1p-24;

// A forward pass and a random cotangent for everything that comes out of it.
struct Problem {
  RouterShape shape;
  std::vector<float> scores, d_gates, d_probability;
  float z_scale = 0;
  RouterOutputs forward;
};

Problem MakeProblem(const RouterShape& shape, uint32_t what, float z_scale,
                    bool with_balance) {
  Problem p;
  p.shape = shape;
  p.scores = MakeScores(shape.num_tokens, shape.num_experts, 0.5f, what);
  p.forward = RunForward(shape, p.scores, 1, ActiveIsa());
  Draws draws(what + 1000);
  for (int64_t i = 0; i < shape.num_tokens * shape.max_active; ++i) {
    // What lies past a token's last expert must not be read.
    p.d_gates.push_back(p.forward.selected[i] >= 0
                            ? draws.Signed()
                            : std::numeric_limits<float>::quiet_NaN());
  }
  if (with_balance) {
    for (int64_t e = 0; e < shape.num_experts; ++e) {
      p.d_probability.push_back(0.3f * draws.Signed());
    }
  }
  p.z_scale = z_scale;
  return p;
}

struct Gradients {
  std::vector<float> d_scores;
  double d_mean_active = -77;
  bool operator==(const Gradients&) const = default;
};

Gradients RunBackward(const Problem& p, int threads, Isa isa) {
  const int64_t size = p.shape.num_tokens * p.shape.num_experts;
  Gradients out;
  out.d_scores.assign(size + 24, -77.0f);
  // NaN exposes reads past the end, or of what no block of tokens has written.
  std::vector<double> scratch(
      RouterScratch(p.shape.num_tokens + kRouterTokenBlock,
                    p.shape.num_experts),
      std::numeric_limits<double>::quiet_NaN());
  const RouterBackwardArgs args = {
      p.shape,
      p.scores.data(),
      p.forward.soft_weights.data(),
      p.forward.root.data(),
      p.forward.selected.data(),
      p.d_gates.data(),
      p.d_probability.empty() ? nullptr : p.d_probability.data(),
      p.z_scale,
      out.d_scores.data(),
      &out.d_mean_active,
      scratch.data()};
  ThreadPool pool(threads);
  if (isa == Isa::kV4) {
    isa_v4::RouterBackward(args, pool);
  } else {
    isa_v3::RouterBackward(args, pool);
  }
  for (int i = 0; i < 24; ++i) EXPECT_EQ(out.d_scores[size + i], -77.0f);
  return out;
}

// Checks every gradient against the formulas in double. The bound: with w_i a
// relative error of q_i (2 du, and 4u for exp and products) and v the
// cotangent of p, the mean g has error
//     dg <= sum q |v - g| w + (n + 8) u sum q |v|
// (chains of fused multiply-adds), and f (v - g)/T then
//     f/T (|v - g| (w + 8u) + dg + 2u (|v| + |g|)).
// Returns the largest error in units of its bound, and on request the bounds
// themselves.
struct GradientBounds {
  std::vector<double> d_scores;
  double d_mean_active = 0;
};
double CheckBackward(const Problem& p, const Gradients& got,
                     GradientBounds* bounds = nullptr) {
  SCOPED_TRACE(Describe(p.shape));
  const int n = static_cast<int>(p.shape.num_experts);
  const bool sparse = p.shape.mode == RouterMode::kSparse;
  const bool on_softmax =
      sparse || p.shape.balance == BalanceBasis::kScoresSoftmax;
  double d_mean_active = 0, d_mean_active_bound = 0;
  std::vector<double> d_scores, d_scores_bound;
  for (int64_t t = 0; t < p.shape.num_tokens; ++t) {
    const NaiveRow row = SolveNaively(p.shape, p.scores.data() + t * n);
    std::vector<double> v(n), v_softmax(n);
    for (int64_t a = t * p.shape.max_active; a < (t + 1) * p.shape.max_active;
         ++a) {
      const int e = p.forward.selected[a];
      if (e >= 0) (sparse ? v_softmax : v)[e] = p.d_gates[a];
    }
    double d_k = 0, d_k_bound = 0;
    if (!sparse) {
      for (int e = 0; e < n; ++e) {
        d_k += row.q[e] * v[e];
        d_k_bound += row.q[e] * std::abs(v[e]);
      }
      double q_error = 0, q_v_error = 0;
      for (int e = 0; e < n; ++e) {
        const double w = std::expm1(2 * row.u_error[e]) + 4 * kU;
        q_error += row.q[e] * w;
        q_v_error += row.q[e] * std::abs(v[e] - d_k) * w;
      }
      d_mean_active += d_k;
      d_mean_active_bound += q_v_error + (n + 8) * kU * d_k_bound;
    }
    for (int e = 0; e < n; ++e) {
      if (p.d_probability.empty()) break;
      if (on_softmax) {
        v_softmax[e] += p.d_probability[e];
      } else {
        v[e] += p.d_probability[e] / double{p.shape.mean_active};
      }
    }

    std::vector<double> exact(n), bound(n, 1e-37);
    // Through a distribution `weights` with scale factors `slope`.
    const auto add = [&](const std::vector<double>& weights,
                         const std::vector<double>& slope,
                         const std::vector<double>& v,
                         const std::vector<double>& error) {
      double g = 0, magnitude = 0, dg = 0;
      for (int e = 0; e < n; ++e) {
        g += weights[e] * v[e];
        magnitude += weights[e] * std::abs(v[e]);
      }
      for (int e = 0; e < n; ++e) {
        dg += weights[e] * std::abs(v[e] - g) * error[e];
      }
      dg += (n + 8) * kU * magnitude;
      for (int e = 0; e < n; ++e) {
        exact[e] += slope[e] * (v[e] - g);
        bound[e] += slope[e] * (std::abs(v[e] - g) * (error[e] + 8 * kU) + dg +
                                2 * kU * (std::abs(v[e]) + std::abs(g)));
      }
    };
    if (!sparse) {
      std::vector<double> slope(n), error(n);
      for (int e = 0; e < n; ++e) {
        slope[e] = row.f[e] / p.shape.temperature;
        error[e] = std::expm1(2 * row.u_error[e]) + 4 * kU;
        // A flushed exp: below 1.7e-38 of the largest weight.
        bound[e] += 1.7e-38 * 4 / p.shape.temperature;
      }
      add(row.q, slope, v, error);
    }
    if (on_softmax || p.z_scale != 0) {
      std::vector<double> error(n);
      const double largest = p.scores[t * n + row.order[0]];
      for (int e = 0; e < n; ++e) {
        error[e] =
            kU * (n / 4.0 + 16 + std::abs(p.scores[t * n + e] - largest));
      }
      if (on_softmax) add(row.softmax, row.softmax, v_softmax, error);
      for (int e = 0; e < n; ++e) {
        const double z = 2.0 * p.z_scale * row.log_sum_exp;
        exact[e] += z * row.softmax[e];
        // logsumexp's relative error is as in router_test.cc; the sums of z
        // with the other terms, and the last addition, round as well.
        bound[e] +=
            row.softmax[e] * (std::abs(z) * (error[e] + 8 * kU) +
                              std::abs(2.0 * p.z_scale) * kU * (n / 4.0 + 16)) +
            kU * std::abs(exact[e]);
      }
    }
    d_scores.insert(d_scores.end(), exact.begin(), exact.end());
    d_scores_bound.insert(d_scores_bound.end(), bound.begin(), bound.end());
  }
  // The scores of a single expert have no gradient.
  const Comparison scores = Compare(
      std::span(got.d_scores).first(d_scores.size()), d_scores, d_scores_bound,
      {.may_be_constant = n == 1, .may_be_tiny = n == 1});
  EXPECT_TRUE(scores.ok()) << scores.Text();
  d_mean_active_bound += p.shape.num_tokens * 0x1p-52 * std::abs(d_mean_active);
  EXPECT_NEAR(got.d_mean_active, d_mean_active, d_mean_active_bound);
  if (bounds != nullptr) {
    *bounds = {std::move(d_scores_bound), d_mean_active_bound};
  }
  return scores.utilisation;
}

TEST(RouterBackward, SoftAgreesWithTheFormulasWithinTheDerivedBound) {
  double worst = 0;
  for (int64_t n : {1, 2, 5, 8, 32, 100}) {
    for (float k : {0.3f, 1.0f, 1.5f, 2.0f, 7.9f, 31.0f}) {
      if (k >= n) continue;
      for (float temperature : {5.0f, 1.0f, 0.1f}) {
        RouterShape shape = SoftShape(37, n, k, temperature, 0.9, 2.0);
        shape.fallback_top1 = true;
        const Problem p = MakeProblem(shape, 11, 0, true);
        worst = std::max(worst, CheckBackward(p, RunBackward(p, 2, Isa::kV3)));
        if (IsaAvailable(Isa::kV4)) {
          CheckBackward(p, RunBackward(p, 2, Isa::kV4));
        }
      }
    }
  }
  EXPECT_GT(worst, 1e-3);
  RecordProperty("worst_error_over_bound", std::to_string(worst));
}

TEST(RouterBackward, BalanceOnSoftmaxAndZLossAddUp) {
  for (float z_scale : {0.0f, 0.02f}) {
    for (bool balance : {false, true}) {
      RouterShape shape = SoftShape(50, 32, 1.5f, 1.0f, 1.1, 2.0);
      shape.balance = BalanceBasis::kScoresSoftmax;
      const Problem p = MakeProblem(shape, 12, z_scale, balance);
      CheckBackward(p, RunBackward(p, 3, ActiveIsa()));
      shape.mode = RouterMode::kSparse;
      shape.max_active = 2;
      const Problem sparse = MakeProblem(shape, 13, z_scale, balance);
      const Gradients got = RunBackward(sparse, 3, ActiveIsa());
      CheckBackward(sparse, got);
      EXPECT_EQ(got.d_mean_active, 0.0);
    }
  }
}

TEST(RouterBackward, BlocksOfTokensMayBeFull) {
  for (const int64_t tokens : {kRouterTokenBlock, 2 * kRouterTokenBlock}) {
    const RouterShape shape = SoftShape(tokens, 8, 1.5f, 1.0f, 0.9, 2.0);
    const Problem p = MakeProblem(shape, 16, 0, true);
    CheckBackward(p, RunBackward(p, 2, ActiveIsa()));
  }
}

// Tokens without any active expert send nothing back, bit for bit.
TEST(RouterBackward, NoActiveExpertNoGradient) {
  const RouterShape shape = SoftShape(40, 32, 1.5f, 5.0f, 30.0, 2.0);
  const Problem p = MakeProblem(shape, 14, 0, false);
  for (int t = 0; t < 40; ++t) ASSERT_EQ(p.forward.num_active[t], 0);
  const Gradients got = RunBackward(p, 1, ActiveIsa());
  for (int i = 0; i < 40 * 32; ++i) EXPECT_EQ(got.d_scores[i], 0.0f);
  EXPECT_EQ(got.d_mean_active, 0.0);
}

// The whole gradient against central differences of a naive double loss along
// random directions. The step's error is estimated by halving it:
// |D(h) - D(h/2)| is three quarters of D(h)'s and three times D(h/2)'s for
// smooth functions; near a kink of f the ratio is lower, so the bound is
// 2 |D(h) - D(h/2)| and the rounding of the kernel's result. The rounding of
// the loss, in double over the step, is 2^-18 of that.
TEST(RouterBackward, MatchesDifferencesOfANaiveLoss) {
  for (bool on_softmax : {false, true}) {
    RouterShape shape = SoftShape(18, 12, 1.7f, 0.8f, 0.8, 2.0);
    if (on_softmax) shape.balance = BalanceBasis::kScoresSoftmax;
    Problem p = MakeProblem(shape, 15, 0.01f, true);
    const int n = 12;
    const Gradients got = RunBackward(p, 1, ActiveIsa());
    GradientBounds rounding;
    CheckBackward(p, got, &rounding);
    double d_k_sum = 0, d_k_bound = rounding.d_mean_active;
    for (int64_t t = 0; t < shape.num_tokens; ++t) {
      if (t % kNumRowKinds == 5) continue;  // scores of 1e4: h drowns
      const auto loss = [&](const std::vector<double>& r, double k,
                            bool gates_only) {
        const double x = BisectRoot(r, k, shape.temperature);
        const double largest = *std::max_element(r.begin(), r.end());
        double sum = 0, total = 0;
        std::vector<double> weight(n);
        for (int e = 0; e < n; ++e) {
          const double u = (r[e] - largest) / shape.temperature - x;
          weight[e] = u <= 0 ? 0.5 * std::exp(u) : 1 - 0.5 * std::exp(-u);
          sum += std::exp(r[e] - largest);
        }
        for (int64_t a = t * shape.max_active; a < (t + 1) * shape.max_active;
             ++a) {
          const int e = p.forward.selected[a];
          if (e >= 0) total += p.d_gates[a] * weight[e];
        }
        if (gates_only) return total;
        for (int e = 0; e < n; ++e) {
          total +=
              p.d_probability[e] * (on_softmax ? std::exp(r[e] - largest) / sum
                                               : weight[e] / shape.mean_active);
        }
        const double lse = largest + std::log(sum);
        return total + p.z_scale * lse * lse;
      };
      const std::vector<double> r(p.scores.begin() + t * n,
                                  p.scores.begin() + (t + 1) * n);
      Draws draws(77 + t);
      std::vector<double> direction(n);
      double product = 0, product_rounding = 0;
      for (int e = 0; e < n; ++e) {
        direction[e] = draws.Signed();
        product += direction[e] * got.d_scores[t * n + e];
        product_rounding +=
            std::abs(direction[e]) * rounding.d_scores[t * n + e];
      }
      const auto slope = [&](double h, double in_scores, double in_k) {
        auto up = r, down = r;
        for (int e = 0; e < n; ++e) {
          up[e] += in_scores * h * direction[e];
          down[e] -= in_scores * h * direction[e];
        }
        const double k = shape.mean_active;
        return (loss(up, k + in_k * h, in_k != 0) -
                loss(down, k - in_k * h, in_k != 0)) /
               (2 * h);
      };
      const double coarse = slope(1e-3, 1, 0), fine = slope(5e-4, 1, 0);
      EXPECT_NEAR(product, fine, 2 * std::abs(coarse - fine) + product_rounding)
          << "row " << t;
      const double k_coarse = slope(1e-3, 0, 1), k_fine = slope(5e-4, 0, 1);
      d_k_sum += k_fine;
      d_k_bound += 2 * std::abs(k_coarse - k_fine);
    }
    // d_mean_active is one sum over all rows: take the skipped rows' from the
    // formula.
    for (int64_t t = 5; t < shape.num_tokens; t += kNumRowKinds) {
      const NaiveRow row = SolveNaively(shape, p.scores.data() + t * n);
      for (int64_t a = t * shape.max_active; a < (t + 1) * shape.max_active;
           ++a) {
        const int e = p.forward.selected[a];
        if (e >= 0) d_k_sum += p.d_gates[a] * row.q[e];
      }
    }
    EXPECT_NEAR(got.d_mean_active, d_k_sum, d_k_bound);
    EXPECT_GT(std::abs(d_k_sum), 10 * d_k_bound);
  }
}

TEST(RouterBackward, NeitherThreadsNorLevelsChangeABit) {
  RouterShape shape = SoftShape(333, 32, 1.5f, 1.0f, 1.1, 2.0);
  const Problem p = MakeProblem(shape, 16, 0.001f, true);
  const Gradients one = RunBackward(p, 1, Isa::kV3);
  EXPECT_EQ(one, RunBackward(p, 3, Isa::kV3));
  EXPECT_EQ(one, RunBackward(p, 4, Isa::kV3));
  if (IsaAvailable(Isa::kV4)) {
    EXPECT_EQ(one, RunBackward(p, 4, Isa::kV4));
  }
}

}  // namespace
}  // namespace softmoe::kernels
