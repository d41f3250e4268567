// SPDX-License-Identifier: Apache-2.0
//
// Router and load balance: kernels against the reference, forward and backward,
// for all routers and both readings of the load balance.
//
// Both sides see the same scores, so the cap and top-k, which compare scores,
// leave no doubt; only soft weights within their bound of the cutoff do. The
// reference's backward pass replays the kernel's selection.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "kernels/cuda/row_kernels.h"
#include "kernels/router.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "property_tests/routing_margin.h"
#include "property_tests/simulated_case.h"
#include "reference/lapsum.h"
#include "reference/load_balance.h"
#include "reference/router.h"
#include "reference/softmax.h"

namespace softmoe::property_tests {
namespace {

using kernels::BalanceBasis;
using kernels::RouterMode;
using kernels::RouterShape;
using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSettings;
using reference::Vector;

constexpr double kCoefficient = 0.25;  // of load balance and z loss

struct RouterCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 60);
  int64_t num_experts = *rc::gen::inRange<int64_t>(2, 40);
  bool sparse = *rc::gen::arbitrary<bool>();
  bool soft_balance = *rc::gen::arbitrary<bool>();
  bool fallback = *rc::gen::arbitrary<bool>();
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  // Exact in float, all of them.
  double spread = *rc::gen::element(0.125, 1.0, 8.0);
  double temperature = *rc::gen::element(0.25, 1.0, 5.0);
  double mean_active =
      1 + 0.125 * *rc::gen::inRange<int>(0, 8 * (num_experts - 1) - 1);
  double tau = *rc::gen::element(0.0, 0.75, 1.25, 3.0);
  int64_t max_active = *rc::gen::inRange<int64_t>(1, num_experts + 1);
  Floats scores = NormalFloats(num_tokens * num_experts, seed, 1, spread);
  Floats d_gates = NormalFloats(num_tokens * max_active, seed, 2);

  RouterShape Shape() const {
    return {.num_tokens = num_tokens,
            .num_experts = num_experts,
            .mode = sparse ? RouterMode::kSparse : RouterMode::kSoft,
            .balance = MegatronReading() ? BalanceBasis::kScoresSoftmax
                                         : BalanceBasis::kSoftWeights,
            .mean_active = static_cast<float>(mean_active),
            .temperature = static_cast<float>(temperature),
            .cutoff = static_cast<float>(Settings().cutoff),
            .max_active = max_active,
            .balance_top = Top(),
            .fallback_top1 = fallback};
  }
  RouterSettings Settings() const {
    const double cutoff = static_cast<float>(tau * mean_active /
                                             static_cast<double>(num_experts));
    return {.kind = sparse ? RouterKind::kSparse : RouterKind::kSoftFixed,
            .mean_active = mean_active,
            .temperature = temperature,
            .cutoff = cutoff,
            .max_active = max_active,
            .fallback = fallback ? Fallback::kTop1 : Fallback::kNone};
  }
  bool MegatronReading() const { return sparse || !soft_balance; }
  int64_t Top() const {
    return sparse ? max_active
                  : reference::BalanceTop(mean_active, num_experts);
  }
};

// What does not depend on the ISA level or thread but is not float.
struct ForwardCounts {
  std::vector<int32_t> selected, num_active;
  std::vector<double> probability_sums;
  std::vector<int64_t> balance_counts, active_counts;
  double z_sum = 0;

  bool operator==(const ForwardCounts&) const = default;
};

// Who computes: the CPU kernels on a pool, or the CUDA kernels in the
// simulator.
struct Backend {
  std::function<void(const kernels::RouterForwardArgs&)> forward;
  std::function<void(const kernels::RouterBackwardArgs&)> backward;
};
Backend OnCpu(ThreadPool& pool) {
  return {[&](const auto& args) { kernels::RouterForward(args, pool); },
          [&](const auto& args) { kernels::RouterBackward(args, pool); }};
}
Backend InTheSimulator() {
  return {
      [](const auto& args) { kernels::isa_shim::RouterForward(args, nullptr); },
      [](const auto& args) {
        kernels::isa_shim::RouterBackward(args, nullptr);
      }};
}

// {soft_weights, gates, d_scores, d_mean_active}
std::vector<Floats> RunKernels(const RouterCase& c, const Vector& d_probability,
                               const Backend& backend, ForwardCounts* counts) {
  const RouterShape shape = c.Shape();
  const int64_t n = c.num_tokens, e = c.num_experts, a = c.max_active;
  Floats soft_weights(n * e), root(2 * n), gates(n * a), d_scores(n * e);
  counts->selected.assign(n * a, -7);
  counts->num_active.assign(n, -7);
  counts->probability_sums.assign(e, NAN);
  counts->balance_counts.assign(e, -7);
  counts->active_counts.assign(e, -7);
  std::vector<double> scratch(kernels::RouterScratch(n, e));
  int64_t bad_score = -2;
  backend.forward({.shape = shape,
                   .scores = c.scores.data(),
                   .soft_weights = soft_weights.data(),
                   .root = root.data(),
                   .num_active = counts->num_active.data(),
                   .selected = counts->selected.data(),
                   .gates = gates.data(),
                   .probability_sums = counts->probability_sums.data(),
                   .balance_counts = counts->balance_counts.data(),
                   .active_counts = counts->active_counts.data(),
                   .z_sum = &counts->z_sum,
                   .bad_score = &bad_score,
                   .scratch = scratch.data()});
  RC_ASSERT(bad_score == -1);
  Floats d_basis(d_probability.begin(), d_probability.end());
  double d_mean_active = NAN;
  backend.backward({.shape = shape,
                    .scores = c.scores.data(),
                    .soft_weights = soft_weights.data(),
                    .root = root.data(),
                    .selected = counts->selected.data(),
                    .d_gates = c.d_gates.data(),
                    .d_probability = d_basis.data(),
                    .z_scale = static_cast<float>(kCoefficient),
                    .d_scores = d_scores.data(),
                    .d_mean_active = &d_mean_active,
                    .scratch = scratch.data()});
  return {soft_weights, gates, d_scores, {static_cast<float>(d_mean_active)}};
}

// One row's numbers with their errors.
struct RowBounds {
  std::vector<Bounded> weights;    // p, or softmax of the scores
  std::vector<Bounded> densities;  // f; soft only
  std::vector<Bounded> softmax;
  Bounded log_sum_exp;
};

RowBounds BoundRow(const RouterCase& c, int64_t t) {
  RowBounds row;
  std::vector<Bounded> scores;
  for (int64_t e = 0; e < c.num_experts; ++e) {
    scores.emplace_back(c.scores[t * c.num_experts + e]);
  }
  const BoundedSoftmax softmax = SoftmaxOf(scores, 0);
  row.log_sum_exp = softmax.log_sum_exp;
  for (const Bounded& x : softmax.exponentials) {
    row.softmax.push_back(x * (Bounded(1) / softmax.sum));
  }
  if (c.sparse) {
    row.weights = row.softmax;
    return row;
  }
  Vector r(c.num_experts);
  for (int64_t e = 0; e < c.num_experts; ++e) r[e] = scores[e].value;
  const reference::LapSum solution =
      reference::SolveLapSum(r, c.mean_active, c.temperature);
  for (const Bounded& u : LapSumArguments(solution, c.mean_active)) {
    row.weights.push_back(LaplaceCdf(u));
    row.densities.push_back(LaplaceDensity(u));
  }
  return row;
}

// sum_i w_i v_i / sum_i w_i, and w_i/scale * (v_i - that): the gradient of
// LapSum (w = f, scale = T) and of softmax (w = s, scale = 1).
struct BoundedVjp {
  Bounded mean;
  std::vector<Bounded> gradient;
};
BoundedVjp Vjp(const std::vector<Bounded>& weights,
               const std::vector<Bounded>& v, double scale) {
  BoundedSum weighted, total;
  for (size_t i = 0; i < weights.size(); ++i) {
    weighted.Add(weights[i] * v[i]);
    total.Add(weights[i]);
  }
  BoundedVjp vjp;
  vjp.mean = weighted.Get() / total.Get();
  for (size_t i = 0; i < weights.size(); ++i) {
    vjp.gradient.push_back(weights[i] * (Bounded(1) / Bounded(scale)) *
                           (v[i] - vjp.mean));
  }
  return vjp;
}

struct BackwardBounds {
  std::vector<Bounded> d_scores;
  BoundedSum d_mean_active;
};

// The three parts of d_scores: gates, load balance, z loss.
void BoundBackwardRow(const RouterCase& c, const RowBounds& row, int64_t t,
                      const BoolMatrix& active, const Vector& d_probability,
                      BackwardBounds* bounds) {
  std::vector<Bounded> v(c.num_experts), v_balance(c.num_experts);
  for (int64_t e = 0, slot = 0; e < c.num_experts; ++e) {
    if (active(t, e)) v[e] = c.d_gates[t * c.max_active + slot++];
    v_balance[e] = Bounded(d_probability[e]).Rounded();
    if (!c.MegatronReading()) {
      v_balance[e] = v_balance[e] / Bounded(c.mean_active);
    }
  }
  const BoundedVjp gates =
      c.sparse ? Vjp(row.softmax, v, 1) : Vjp(row.densities, v, c.temperature);
  if (!c.sparse) bounds->d_mean_active.Add(gates.mean);
  const BoundedVjp balance = c.MegatronReading()
                                 ? Vjp(row.softmax, v_balance, 1)
                                 : Vjp(row.densities, v_balance, c.temperature);
  for (int64_t e = 0; e < c.num_experts; ++e) {
    const Bounded z =
        Bounded(2 * kCoefficient) * row.log_sum_exp * row.softmax[e];
    // In any order, and with the two v added before or after.
    BoundedSum sum;
    sum.Add(gates.gradient[e]);
    sum.Add(balance.gradient[e]);
    sum.Add(z);
    bounds->d_scores.push_back(sum.Get());
  }
}

BoolMatrix ActiveSet(const RouterCase& c, const ForwardCounts& counts) {
  BoolMatrix active = BoolMatrix::Constant(c.num_tokens, c.num_experts, false);
  for (size_t i = 0; i < counts.selected.size(); ++i) {
    if (counts.selected[i] >= 0) {
      active(static_cast<int64_t>(i) / c.max_active, counts.selected[i]) = true;
    }
  }
  return active;
}

// d loss / d basis of one token for the load balance of the reference.
Vector BalanceCotangent(const RouterCase& c,
                        const reference::LoadBalance& balance) {
  return kCoefficient * static_cast<double>(c.num_experts) * balance.fractions /
         static_cast<double>(c.num_tokens);
}

Matrix ExpectedDScores(const RouterCase& c, const Matrix& scores,
                       const reference::LoadBalance& balance,
                       const reference::RouterGradients& gates) {
  const RouterSettings settings = c.Settings();
  const Matrix balance_part =
      c.MegatronReading()
          ? reference::MegatronLoadBalanceGradient(kCoefficient, balance,
                                                   scores)
          : reference::SoftWeightsBackward(
                settings, scores,
                reference::SoftLoadBalanceGradient(kCoefficient, c.mean_active,
                                                   balance, c.num_tokens));
  // ZLossGradient is that of the mean; the kernel's scale is per token.
  return gates.d_scores + balance_part +
         static_cast<double>(c.num_tokens) *
             reference::ZLossGradient(kCoefficient, scores);
}

void CheckCounts(const RouterCase& c, const ForwardCounts& counts,
                 const BoolMatrix& active,
                 const reference::LoadBalance& balance,
                 const std::vector<RowBounds>& rows, const Matrix& scores) {
  int64_t counted = 0;
  for (const int64_t count : counts.balance_counts) counted += count;
  double z_sum = 0, z_error = 0;
  for (int64_t t = 0; t < c.num_tokens; ++t) {
    RC_ASSERT(counts.num_active[t] == active.row(t).count());
    z_sum += std::pow(reference::LogSumExp(scores.row(t)), 2);
    const Bounded square = rows[t].log_sum_exp * rows[t].log_sum_exp;
    z_error += square.error;
  }
  RC_ASSERT(std::abs(counts.z_sum - z_sum) <= z_error + 1e-14 * z_sum);
  for (int64_t e = 0; e < c.num_experts; ++e) {
    RC_ASSERT(counts.active_counts[e] == active.col(e).count());
    const double fraction =
        counted == 0 ? 1.0 / static_cast<double>(c.num_experts)
                     : static_cast<double>(counts.balance_counts[e]) /
                           static_cast<double>(counted);
    RC_ASSERT(std::abs(fraction - balance.fractions[e]) <= 1e-15);
    double error = 0;
    for (const RowBounds& row : rows) {
      const Bounded basis = c.MegatronReading()
                                ? row.softmax[e]
                                : row.weights[e] / Bounded(c.mean_active);
      error += basis.error + kUnderflow;
    }
    const double expected =
        balance.probabilities[e] * static_cast<double>(c.num_tokens);
    RC_ASSERT(std::abs(counts.probability_sums[e] - expected) <=
              error + 1e-14 * expected);
  }
}

RC_GTEST_PROP(RouterDifference, ForwardAndBackwardAreWithinTheirBounds, ()) {
  const RouterCase c;
  const int64_t n = c.num_tokens, e = c.num_experts;
  const Matrix scores = AsMatrix(c.scores, n, e);
  const RouterSettings settings = c.Settings();

  // The cotangent of the load balance follows from the counts, so the kernel
  // runs once for them.
  ForwardCounts counts;
  {
    ThreadPool pool(1);
    RunKernels(c, Vector::Zero(e), OnCpu(pool), &counts);
  }
  const BoolMatrix active = ActiveSet(c, counts);
  std::vector<RowBounds> rows;
  for (int64_t t = 0; t < n; ++t) rows.push_back(BoundRow(c, t));
  double weight_error = 0;  // relative, of weights that a cutoff can meet
  for (const RowBounds& row : rows) {
    for (const Bounded& p : row.weights) {
      if (p.value > 0.5 * settings.cutoff && p.value > 1e-30) {
        weight_error = std::max(weight_error, p.error / p.value);
      }
    }
  }
  const SelectionCheck selection =
      CheckSelection(settings, scores, active, 0.0, weight_error);
  RC_ASSERT(selection.defect == "");
  RC_CLASSIFY(selection.ambiguous > 0, "near-ties");

  reference::RouterSaved saved = reference::RouterForward(settings, scores);
  saved.active = active;
  saved.gates = active.select(saved.soft_weights, 0.0);
  const reference::LoadBalance balance =
      c.MegatronReading()
          ? reference::MegatronLoadBalance(kCoefficient, c.Top(), scores)
          : reference::SoftLoadBalance(kCoefficient, c.mean_active,
                                       saved.soft_weights, active);
  CheckCounts(c, counts, active, balance, rows, scores);
  const Vector d_probability = BalanceCotangent(c, balance);

  Matrix d_gates = Matrix::Zero(n, e);
  Matrix slots = Matrix::Zero(n, c.max_active);
  std::vector<Bounded> weight_bounds, gate_bounds;
  BackwardBounds backward;
  for (int64_t t = 0; t < n; ++t) {
    int64_t slot = 0;
    for (int64_t i = 0; i < e; ++i) {
      weight_bounds.push_back(rows[t].weights[i]);
      if (!active(t, i)) continue;
      d_gates(t, i) = c.d_gates[t * c.max_active + slot];
      slots(t, slot++) = saved.soft_weights(t, i);
      gate_bounds.push_back(rows[t].weights[i]);
    }
    gate_bounds.resize((t + 1) * c.max_active);
    BoundBackwardRow(c, rows[t], t, active, d_probability, &backward);
  }
  const reference::RouterGradients gradients =
      reference::RouterBackward(settings, scores, saved, d_gates);
  const Matrix d_scores = ExpectedDScores(c, scores, balance, gradients);
  const std::vector<Bounded> d_mean_active = {
      backward.d_mean_active.Get().Rounded()};
  const std::vector<double> expected_d_mean_active = {gradients.d_mean_active};

  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    ForwardCounts again;
    auto outputs = RunKernels(c, d_probability, OnCpu(pool), &again);
    RC_ASSERT(again.selected == counts.selected);
    return outputs;
  });
  // The CUDA kernels do the same operations in the same order as the CPU's.
  const auto simulated = RunInTheSimulator([&] {
    ForwardCounts again;
    auto outputs = RunKernels(c, d_probability, InTheSimulator(), &again);
    RC_ASSERT(again == counts);
    return outputs;
  });
  RC_ASSERT(SameBits(simulated, levels[0]));
  for (const auto& got : levels) {
    RC_ASSERT(Mismatch("soft_weights", got[0], saved.soft_weights,
                       weight_bounds) == "");
    RC_ASSERT(Mismatch("gates", got[1], slots, gate_bounds) == "");
    RC_ASSERT(Mismatch("d_scores", got[2], d_scores, backward.d_scores) == "");
    RC_ASSERT(Mismatch("d_mean_active", got[3],
                       std::span<const double>(expected_d_mean_active),
                       d_mean_active) == "");
  }
}

}  // namespace
}  // namespace softmoe::property_tests
