// SPDX-License-Identifier: Apache-2.0
#include "kernels/testing/router_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace softmoe::kernels {
namespace {

constexpr double kU = 0x1p-24;
constexpr int kCanaries = 24;
constexpr int kCanary = -77;

double LaplaceCdf(double u) {
  return u <= 0 ? 0.5 * std::exp(u) : 1 - 0.5 * std::exp(-u);
}

template <typename T>
void ExpectCanary(const std::vector<T>& x, size_t size, const char* name) {
  ASSERT_EQ(x.size(), size + kCanaries);
  for (int i = 0; i < kCanaries; ++i) {
    EXPECT_EQ(x[size + i], T(kCanary)) << name << " overrun at " << i;
  }
}

}  // namespace

std::vector<float> MakeScores(int64_t num_tokens, int64_t num_experts,
                              float scale, uint32_t what) {
  Draws draws(what);
  std::vector<float> scores(num_tokens * num_experts);
  for (int64_t t = 0; t < num_tokens; ++t) {
    float* r = scores.data() + t * num_experts;
    for (int64_t e = 0; e < num_experts; ++e) {
      // About normal: a sum of uniforms.
      r[e] = scale * (draws.Signed() + draws.Signed() + draws.Signed());
    }
    const int64_t one = draws.Below(num_experts);
    switch (t % kNumRowKinds) {
      case 1:  // all equal
        std::fill(r, r + num_experts, r[0]);
        break;
      case 2:  // one dominant
        r[one] += 60 * scale;
        break;
      case 3:  // plateaus
        for (int64_t e = 0; e < num_experts; ++e) {
          r[e] = scale * std::round(2 * r[e] / scale);
        }
        break;
      case 4:  // near-ties, one unit in the last place apart
        for (int64_t e = 0; e < num_experts; ++e) {
          r[e] = e % 2 == 0 ? r[0] : std::nextafter(r[0], 1e30f);
        }
        break;
      case 5:  // huge gaps
        for (int64_t e = 0; e < num_experts; ++e) r[e] *= 1e4f;
        break;
      case 6:  // far from zero: only differences may matter
        for (int64_t e = 0; e < num_experts; ++e) r[e] += 1000 * scale;
        break;
      case 7:  // ascending
        std::sort(r, r + num_experts);
        break;
      case 8:  // one far below
        r[one] -= 200 * scale;
        break;
      default:
        break;
    }
  }
  return scores;
}

RouterOutputs RunForward(const RouterShape& shape,
                         const std::vector<float>& scores, int threads,
                         Isa isa) {
  const int64_t tokens = shape.num_tokens, n = shape.num_experts;
  RouterOutputs out;
  out.soft_weights.assign(tokens * n + kCanaries, kCanary);
  out.root.assign(2 * tokens + kCanaries, kCanary);
  out.gates.assign(tokens * shape.max_active + kCanaries, kCanary);
  out.num_active.assign(tokens + kCanaries, kCanary);
  out.selected.assign(tokens * shape.max_active + kCanaries, kCanary);
  out.probability_sums.assign(n + kCanaries, kCanary);
  out.scratch.assign(RouterScratch(tokens, n) + kCanaries, kCanary);
  out.balance_counts.assign(n + kCanaries, kCanary);
  out.active_counts.assign(n + kCanaries, kCanary);
  RouterForwardArgs args = {};
  args.shape = shape;
  args.scores = scores.data();
  args.soft_weights = out.soft_weights.data();
  args.root = out.root.data();
  args.num_active = out.num_active.data();
  args.selected = out.selected.data();
  args.gates = out.gates.data();
  args.probability_sums = out.probability_sums.data();
  args.balance_counts = out.balance_counts.data();
  args.active_counts = out.active_counts.data();
  args.z_sum = &out.z_sum;
  args.bad_score = &out.bad_score;
  args.scratch = out.scratch.data();
  ThreadPool pool(threads);
  if (isa == Isa::kV4) {
    isa_v4::RouterForward(args, pool);
  } else {
    isa_v3::RouterForward(args, pool);
  }
  return out;
}

void ExpectCanaries(const RouterShape& shape, const RouterOutputs& out) {
  const size_t tokens = shape.num_tokens, n = shape.num_experts;
  ExpectCanary(out.soft_weights, tokens * n, "soft_weights");
  ExpectCanary(out.root, 2 * tokens, "root");
  ExpectCanary(out.gates, tokens * shape.max_active, "gates");
  ExpectCanary(out.num_active, tokens, "num_active");
  ExpectCanary(out.selected, tokens * shape.max_active, "selected");
  ExpectCanary(out.probability_sums, n, "probability_sums");
  ExpectCanary(out.scratch, RouterScratch(tokens, n), "scratch");
  ExpectCanary(out.balance_counts, n, "balance_counts");
  ExpectCanary(out.active_counts, n, "active_counts");
}

double BisectRoot(const std::vector<double>& scores, double mean_active,
                  double temperature) {
  const double n = static_cast<double>(scores.size());
  const double largest = *std::max_element(scores.begin(), scores.end());
  const double smallest = *std::min_element(scores.begin(), scores.end());
  double low = (smallest - largest) / temperature +
               std::log(2 * (n - mean_active) / n) - 1;
  double high = std::log(n / (2 * mean_active)) + 1;
  for (int step = 0; step < 200; ++step) {
    const double middle = 0.5 * (low + high);
    // sum F - k = (j - k) + sum_{u<=0} F - sum_{u>0} (1 - F): no cancellation
    // against 1 where gaps are wide and k is an integer. There the two sums
    // alone decide, however small: they are kept relative to e^-nearest.
    double count = 0, lower = 0, upper = 0, nearest = 1e300;
    for (double r : scores) {
      const double u = (r - largest) / temperature - middle;
      nearest = std::min(nearest, std::abs(u));
      count += u > 0;
    }
    for (double r : scores) {
      const double u = (r - largest) / temperature - middle;
      (u > 0 ? upper : lower) += 0.5 * std::exp(nearest - std::abs(u));
    }
    const double excess =
        count == mean_active
            ? lower - upper
            : (count - mean_active) + (lower - upper) * std::exp(-nearest);
    (excess > 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

NaiveRow SolveNaively(const RouterShape& shape, const float* scores) {
  const int n = static_cast<int>(shape.num_experts);
  const std::vector<double> r(scores, scores + n);
  NaiveRow row;
  row.order.resize(n);
  std::iota(row.order.begin(), row.order.end(), 0);
  std::stable_sort(row.order.begin(), row.order.end(),
                   [&](int a, int b) { return r[a] > r[b]; });
  const double largest = r[row.order[0]];
  double sum = 0;
  for (double score : r) sum += std::exp(score - largest);
  row.log_sum_exp = largest + std::log(sum);
  for (double score : r) {
    row.softmax.push_back(std::exp(score - largest) / sum);
  }
  row.u_error.resize(n);
  row.p_error.resize(n);
  if (shape.mode == RouterMode::kSparse) {
    row.p = row.softmax;
    for (int e = 0; e < n; ++e) {
      // exp 2u, its argument |r - s_1| u; the sum (n/4 + 3) u and the same
      // arguments' errors again, weighted (<= ln n); reciprocal and product 2u.
      row.p_error[e] =
          row.p[e] * kU * (n / 4.0 + 16 + std::abs(r[e] - largest)) + 1.2e-38;
    }
    return row;
  }

  const double temperature = shape.temperature;
  const double k = shape.mean_active;
  row.root = BisectRoot(r, k, temperature);
  double f_sum = 0, smallest_u = 1e300;
  for (int e = 0; e < n; ++e) {
    const double u = (r[e] - largest) / temperature - row.root;
    row.u.push_back(u);
    row.p.push_back(LaplaceCdf(u));
    row.f.push_back(0.5 * std::exp(-std::abs(u)));
    smallest_u = std::min(smallest_u, std::abs(u));
  }
  for (double u : row.u) f_sum += std::exp(smallest_u - std::abs(u));
  for (double u : row.u) {
    row.q.push_back(std::exp(smallest_u - std::abs(u)) / f_sum);
  }
  // The anchor is one of the two scores around the root: in units of u, the
  // smallest |u| on either side, or the first on the only side.
  double above = 1e300, below = 1e300;
  for (double u : row.u) {
    if (u >= 0) above = std::min(above, u);
    if (u <= 0) below = std::min(below, -u);
  }
  if (above == 1e300) above = below;
  if (below == 1e300) below = above;
  const double offset = std::max(above, below);
  const double m = std::min<double>(
      n,
      std::max<double>({std::ceil(2 * k), static_cast<double>(shape.max_active),
                        static_cast<double>(shape.balance_top)}));
  const double constant = n / 4.0 + 6 * m + 32;
  for (int e = 0; e < n; ++e) {
    const double z = std::abs(row.u[e]) + offset;
    row.u_error[e] = kU * (constant + 4 * (z + offset));
    row.p_error[e] =
        row.f[e] * std::expm1(row.u_error[e]) + 3 * kU * row.p[e] + 1.7e-38;
  }
  return row;
}

RouterShape SoftShape(int64_t num_tokens, int64_t num_experts,
                      float mean_active, float temperature, double tau,
                      double expansion) {
  RouterShape shape = {};
  shape.num_tokens = num_tokens;
  shape.num_experts = num_experts;
  shape.mode = RouterMode::kSoft;
  shape.balance = BalanceBasis::kSoftWeights;
  shape.mean_active = mean_active;
  shape.temperature = temperature;
  shape.cutoff = static_cast<float>(tau * mean_active / num_experts);
  shape.max_active = std::clamp<int64_t>(
      static_cast<int64_t>(std::ceil(expansion * mean_active - 1e-6)), 1,
      num_experts);
  shape.balance_top =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(mean_active)));
  return shape;
}

std::string Describe(const RouterShape& s) {
  return "tokens " + std::to_string(s.num_tokens) + " experts " +
         std::to_string(s.num_experts) +
         (s.mode == RouterMode::kSparse ? " sparse" : " soft") + " k " +
         std::to_string(s.mean_active) + " T " + std::to_string(s.temperature) +
         " cap " + std::to_string(s.max_active) + " balance " +
         std::to_string(s.balance_top);
}

}  // namespace softmoe::kernels
