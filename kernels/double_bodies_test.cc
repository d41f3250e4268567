// SPDX-License-Identifier: Apache-2.0
//
// The bodies that the kernels are made of, run at double on SerialLane: they
// must agree with naive double code to 1e-11 (DESIGN.md, "One kernel source"),
// which no wrong formula and no epsilon of float size survives.
#define SOFTMOE_ISA isa_test  // the namespace that bodies are instantiated in

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/adamw_body.h"
#include "kernels/attention_rows_body.h"
#include "kernels/cross_entropy_body.h"
#include "kernels/permute_body.h"
#include "kernels/rmsnorm_body.h"
#include "kernels/router_backward_body.h"
#include "kernels/router_body.h"
#include "kernels/swiglu_body.h"
#include "kernels/testing/router_testing.h"

namespace softmoe::kernels {
namespace {

using SOFTMOE_ISA::SerialLane;
// Acceptance: DESIGN.md, "One kernel source".
constexpr double kTolerance = 1e-11;

TEST(DoubleBodies, LapSumAndItsGradientAgreeWithNaiveCode) {
  for (int n : {1, 2, 8, 32, 100}) {
    for (float k : {0.3f, 1.0f, 1.5f, 2.0f, 7.9f, 40.0f}) {
      if (k >= static_cast<float>(n)) continue;
      for (float temperature : {5.0f, 1.0f, 0.1f}) {
        const RouterShape shape = SoftShape(18, n, k, temperature, 1.1, 2.0);
        const auto scores = MakeScores(18, n, 0.5f, 1);
        SOFTMOE_ISA::RouterConstants<double> c = {};
        c.num_experts = n;
        c.max_active = static_cast<int>(shape.max_active);
        c.top = std::min(n, static_cast<int>(std::ceil(
                                2 * std::max(k, 0.5f * shape.max_active))));
        c.mean_active = k;
        c.inverse_temperature = 1 / static_cast<double>(temperature);
        c.cutoff = shape.cutoff;
        c.want_log_sum_exp = true;
        for (int t = 0; t < 18; ++t) {
          const std::vector<double> r(scores.begin() + t * n,
                                      scores.begin() + (t + 1) * n);
          const NaiveRow naive = SolveNaively(shape, scores.data() + t * n);
          std::vector<double> p(n), top(2 * c.top);
          std::vector<int32_t> active((n + 31) / 32);
          SOFTMOE_ISA::RouterRow<SerialLane<double>> row = {};
          row.scores = r.data();
          row.weights = p.data();
          row.top = top.data();
          row.active = active.data();
          SOFTMOE_ISA::SoftRouterForwardRow<0>(c, row);

          Draws draws(7 + t);
          SOFTMOE_ISA::RouterGradientConstants<double> g = {};
          g.num_experts = n;
          g.inverse_temperature = c.inverse_temperature;
          std::vector<double> v(n), d_scores(n);
          double d_mean_active = 0;
          for (int e = 0; e < n; ++e) {
            v[e] = draws.Signed();
            d_mean_active += naive.q[e] * v[e];
          }
          const double got = SOFTMOE_ISA::LapSumBackwardRow(
              g, r.data(), row.anchor, row.offset, v.data(), d_scores.data());
          EXPECT_NEAR(got, d_mean_active, kTolerance);
          EXPECT_NEAR(row.log_sum_exp, naive.log_sum_exp,
                      kTolerance * (1 + std::abs(naive.log_sum_exp)));
          for (int e = 0; e < n; ++e) {
            EXPECT_NEAR(p[e], naive.p[e], kTolerance)
                << Describe(shape) << " row " << t << " expert " << e;
            EXPECT_NEAR(d_scores[e] * temperature,
                        naive.f[e] * (v[e] - d_mean_active), kTolerance);
          }
        }
      }
    }
  }
}

TEST(DoubleBodies, SparseRouterAgreesWithNaiveCode) {
  const int n = 32;
  const auto scores = MakeScores(18, n, 0.5f, 2);
  RouterShape shape = {};
  shape.num_experts = n;
  shape.mode = RouterMode::kSparse;
  shape.max_active = 3;
  SOFTMOE_ISA::RouterConstants<double> c = {};
  c.num_experts = n;
  c.top = c.max_active = 3;
  for (int t = 0; t < 18; ++t) {
    const std::vector<double> r(scores.begin() + t * n,
                                scores.begin() + (t + 1) * n);
    const NaiveRow naive = SolveNaively(shape, scores.data() + t * n);
    std::vector<double> p(n), v(n), d_scores(n);
    int32_t active = 0;
    SOFTMOE_ISA::RouterRow<SerialLane<double>> row = {};
    row.scores = r.data();
    row.weights = p.data();
    row.active = &active;
    SOFTMOE_ISA::SparseRouterForwardRow<3>(c, row);
    int32_t expected = 0;
    for (int i = 0; i < 3; ++i) expected |= int32_t(1u << naive.order[i]);
    EXPECT_EQ(active, expected);
    Draws draws(7 + t);
    double mean = 0;
    for (int e = 0; e < n; ++e) {
      v[e] = draws.Signed();
      mean += naive.softmax[e] * v[e];
    }
    SOFTMOE_ISA::RouterGradientConstants<double> g = {};
    g.num_experts = n;
    g.z_scale = 0.3;
    SOFTMOE_ISA::SparseBackwardRow(g, r.data(), p.data(), v.data(),
                                   d_scores.data());
    for (int e = 0; e < n; ++e) {
      EXPECT_NEAR(p[e], naive.p[e], kTolerance);
      EXPECT_NEAR(
          d_scores[e],
          naive.softmax[e] * (v[e] - mean + 2 * 0.3 * naive.log_sum_exp),
          kTolerance * (1 + std::abs(naive.log_sum_exp)));
    }
  }
}

TEST(DoubleBodies, RmsNormAgreesWithNaiveCode) {
  const int tokens = 5, d = 37;
  Draws draws(3);
  std::vector<double> x(tokens * d), w(d), y(d), d_y(tokens * d),
      d_x(tokens * d), d_w(d), rstd(tokens), sum_w(d);
  for (double& value : x) value = draws.Signed();
  for (double& value : d_y) value = draws.Signed();
  for (double& value : w) value = draws.Signed();
  for (int t = 0; t < tokens; ++t) {
    SOFTMOE_ISA::RmsNormForwardRow(SerialLane<double>(), d, 1e-5,
                                   x.data() + t * d, w.data(), y.data(),
                                   &rstd[t]);
    double sum = 0;
    for (int i = 0; i < d; ++i) sum += x[t * d + i] * x[t * d + i];
    EXPECT_NEAR(rstd[t], 1 / std::sqrt(sum / d + 1e-5), kTolerance);
    for (int i = 0; i < d; ++i) {
      EXPECT_NEAR(y[i], x[t * d + i] * w[i] / std::sqrt(sum / d + 1e-5),
                  kTolerance);
      sum_w[i] += d_y[t * d + i] * x[t * d + i] * rstd[t];
    }
  }
  SOFTMOE_ISA::RmsNormBackwardRows(SerialLane<double>(), 0, tokens, d, x.data(),
                                   w.data(), rstd.data(), d_y.data(),
                                   d_x.data(), d_w.data());
  for (int t = 0; t < tokens; ++t) {
    double dot = 0;
    for (int i = 0; i < d; ++i) dot += d_y[t * d + i] * w[i] * x[t * d + i];
    for (int i = 0; i < d; ++i) {
      const double r = rstd[t];
      EXPECT_NEAR(d_x[t * d + i],
                  r * (d_y[t * d + i] * w[i] - x[t * d + i] * dot * r * r / d),
                  kTolerance);
    }
  }
  for (int i = 0; i < d; ++i) EXPECT_NEAR(d_w[i], sum_w[i], kTolerance);
}

TEST(DoubleBodies, SwigluAgreesWithNaiveCode) {
  const int d = 37;
  const double gate = -0.7;
  Draws draws(4);
  std::vector<double> gate_up(2 * d), d_activation(d), activation(d), again(d),
      d_gate_up(2 * d);
  for (double& x : gate_up) x = 20 * draws.Signed();
  for (double& x : d_activation) x = draws.Signed();
  SOFTMOE_ISA::SwigluForwardRow(SerialLane<double>(), d, gate_up.data(), gate,
                                activation.data());
  double d_row_gate = 0, dot = 0;
  SOFTMOE_ISA::SwigluBackwardRow(SerialLane<double>(), d, gate_up.data(), gate,
                                 d_activation.data(), d_gate_up.data(),
                                 again.data(), &d_row_gate);
  EXPECT_EQ(again, activation);
  for (int i = 0; i < d; ++i) {
    const double z = gate_up[i], up = gate_up[d + i], v = d_activation[i];
    const double s = 1 / (1 + std::exp(-z));
    EXPECT_NEAR(activation[i], gate * z * s * up, kTolerance);
    EXPECT_NEAR(d_gate_up[i], gate * v * up * s * (1 + z * (1 - s)),
                kTolerance);
    EXPECT_NEAR(d_gate_up[d + i], gate * v * z * s, kTolerance);
    dot += v * z * s * up;
  }
  EXPECT_NEAR(d_row_gate, dot, kTolerance);
}

TEST(DoubleBodies, PermuteAgreesWithNaiveCode) {
  const int d = 5;
  Draws draws(5);
  std::vector<double> rows(4 * d), copy(d), sum(d, 0.5);
  for (double& x : rows) x = draws.Signed();
  SOFTMOE_ISA::CopyRow(SerialLane<double>(), d, rows.data() + d, copy.data());
  const int32_t token_rows[] = {3, 0, -1, 2};
  for (const bool accumulate : {true, false}) {
    SOFTMOE_ISA::UnpermuteToken(SerialLane<double>(), d, 4, rows.data(),
                                token_rows, accumulate, sum.data());
    for (int i = 0; i < d; ++i) {
      EXPECT_EQ(copy[i], rows[d + i]);
      EXPECT_NEAR(sum[i], (accumulate ? 0.5 : 0) + rows[3 * d + i] + rows[i],
                  kTolerance);
    }
  }
}

TEST(DoubleBodies, CrossEntropyAgreesWithNaiveCode) {
  const int vocab = 37, target = 11;
  const double scale = 0.3;
  Draws draws(6);
  std::vector<double> logits(vocab);
  for (double& x : logits) x = 15 * draws.Signed();
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (const bool want_gradient : {true, false}) {
    std::vector<double> row = logits;
    double loss = 0;
    SOFTMOE_ISA::CrossEntropyRow(SerialLane<double>(), vocab, target, scale,
                                 row.data(),
                                 want_gradient ? row.data() : nullptr, &loss);
    EXPECT_NEAR(loss, std::log(sum) - logits[target], kTolerance);
    for (int i = 0; want_gradient && i < vocab; ++i) {
      EXPECT_NEAR(row[i], scale * (std::exp(logits[i]) / sum - (i == target)),
                  kTolerance);
    }
  }
}

TEST(DoubleBodies, AttentionRowsAgreeWithNaiveCode) {
  constexpr int kKeys = 13, kDim = 5;
  const double scale = 0.4;
  Draws draws(8);
  const auto drawn = [&](int size, double factor) {
    std::vector<double> x(size);
    for (double& value : x) value = factor * draws.Signed();
    return x;
  };
  const std::vector<double> scores = drawn(kKeys, 9);
  const std::vector<double> d_weights = drawn(kKeys, 2);
  const std::vector<double> out = drawn(kDim, 1), d_out = drawn(kDim, 1);
  double delta = 0;
  for (int i = 0; i < kDim; ++i) delta += out[i] * d_out[i];
  for (const int visible : {1, 6, kKeys}) {
    double sum = 0;
    for (int s = 0; s < visible; ++s) sum += std::exp(scale * scores[s]);
    std::vector<double> row = scores;
    double log_sum_exp = 0;
    SOFTMOE_ISA::CausalSoftmaxRow(SerialLane<double>(), visible, kKeys, scale,
                                  row.data(), row.data(), &log_sum_exp);
    EXPECT_NEAR(log_sum_exp, std::log(sum), kTolerance);
    std::vector<double> weights = scores, d_scores = d_weights;
    SOFTMOE_ISA::CausalSoftmaxBackwardRow(
        SerialLane<double>(), visible, kKeys, kDim, scale, log_sum_exp,
        out.data(), d_out.data(), weights.data(), d_scores.data(),
        weights.data(), d_scores.data());
    for (int s = 0; s < kKeys; ++s) {
      const double weight =
          s < visible ? std::exp(scale * scores[s]) / sum : 0.0;
      EXPECT_NEAR(row[s], weight, kTolerance);
      EXPECT_NEAR(weights[s], weight, kTolerance);
      EXPECT_NEAR(d_scores[s], weight * scale * (d_weights[s] - delta),
                  kTolerance);
    }
  }
}

TEST(DoubleBodies, AdamWAgreesWithNaiveCode) {
  const SOFTMOE_ISA::AdamWConstants<double> c = {1e-3, 0.9, 0.95, 1e-8,
                                                 0.1,  4.0, 9.0,  0.7};
  double p = 0.3, m = -0.02, v = 0.05;
  SOFTMOE_ISA::AdamWUpdate(c, 0.4, p, m, v);
  const double g = 0.7 * 0.4, m2 = 0.9 * -0.02 + 0.1 * g,
               v2 = 0.95 * 0.05 + 0.05 * g * g;
  EXPECT_NEAR(m, m2, kTolerance);
  EXPECT_NEAR(v, v2, kTolerance);
  EXPECT_NEAR(p, 0.3 - 1e-3 * (m2 * 4 / (std::sqrt(v2 * 9) + 1e-8) + 0.1 * 0.3),
              kTolerance);
}

}  // namespace
}  // namespace softmoe::kernels
