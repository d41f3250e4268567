// SPDX-License-Identifier: Apache-2.0
//
// The experts of one layer over a route plan: kernels against the reference's
// experts, weighted by the gates and summed per token.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/expert_mlp.h"
#include "kernels/route_plan.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "reference/expert.h"

namespace softmoe::property_tests {
namespace {

using reference::Matrix;

// Tokens, experts and a random selection: some tokens without an expert, often
// some experts without a token.
struct ExpertCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 40);
  int64_t num_experts = *rc::gen::inRange<int64_t>(1, 7);
  int64_t max_active = *rc::gen::inRange<int64_t>(1, num_experts + 1);
  int64_t d_model = *rc::gen::inRange<int64_t>(1, 40);
  int64_t d_ffn = *rc::gen::inRange<int64_t>(1, 36);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  Floats hidden = NormalFloats(num_tokens * d_model, seed, 1);
  Floats gate_up =
      NormalFloats(num_experts * d_model * 2 * d_ffn, seed, 2, 0.3);
  Floats down = NormalFloats(num_experts * d_ffn * d_model, seed, 3, 0.3);
  Floats out = NormalFloats(num_tokens * d_model, seed, 4);  // added to
  Floats d_out = NormalFloats(num_tokens * d_model, seed, 5);
  std::vector<int32_t> num_active, selected;
  Floats gates;

  ExpertCase() {
    const std::vector<int32_t> counts =
        RandomIds(num_tokens, max_active + 1, seed, 6);
    const std::vector<int32_t> picks =
        RandomIds(num_tokens * num_experts, 1 << 20, seed, 7);
    const Floats values = NormalFloats(num_tokens * max_active, seed, 8);
    for (int64_t t = 0; t < num_tokens; ++t) {
      std::vector<int32_t> experts(num_experts);
      for (int64_t e = 0; e < num_experts; ++e) experts[e] = e;
      std::sort(experts.begin(), experts.end(), [&](int32_t a, int32_t b) {
        return picks[t * num_experts + a] < picks[t * num_experts + b];
      });
      experts.resize(counts[t]);
      std::sort(experts.begin(), experts.end());
      num_active.push_back(counts[t]);
      for (int64_t i = 0; i < max_active; ++i) {
        selected.push_back(i < counts[t] ? experts[i] : -1);
        gates.push_back(i < counts[t] ? values[t * max_active + i] : 0.0f);
      }
    }
  }

  int64_t slots() const { return num_tokens * max_active; }
  std::span<const float> GateUp(int64_t e) const {
    return std::span(gate_up).subspan(e * d_model * 2 * d_ffn,
                                      d_model * 2 * d_ffn);
  }
  std::span<const float> Down(int64_t e) const {
    return std::span(down).subspan(e * d_ffn * d_model, d_ffn * d_model);
  }
};

// {out, d_gates in slots, d_hidden, d_gate_up_weight, d_down_weight}
std::vector<Floats> RunKernels(const ExpertCase& c, ThreadPool& pool) {
  const int64_t n = c.num_tokens, e = c.num_experts, a = c.max_active;
  const int64_t d = c.d_model, f = c.d_ffn, slots = c.slots();
  std::vector<int32_t> offsets(e + 1), row_token(slots), token_rows(slots);
  std::vector<int32_t> plan_scratch(kernels::RoutePlanScratch(n, e));
  Floats row_gate(slots);
  kernels::BuildRoutePlan(
      {n, e, a, c.num_active.data(), c.selected.data(), c.gates.data(),
       offsets.data(), row_token.data(), row_gate.data(), token_rows.data(),
       plan_scratch.data()},
      pool);
  const kernels::RoutePlan plan = {n,
                                   e,
                                   offsets[e],
                                   a,
                                   offsets.data(),
                                   row_token.data(),
                                   row_gate.data(),
                                   token_rows.data()};
  Floats saved(slots * 2 * f), row_output(slots * d), out = c.out;
  kernels::ExpertForward(
      {plan, d, f, c.hidden.data(), c.gate_up.data(), c.down.data(),
       saved.data(), row_output.data(), out.data()},
      pool);
  Floats d_gate_up(slots * 2 * f), d_rows(slots * d), activation(slots * f);
  Floats d_row_gate(slots), d_hidden(n * d), d_gate_up_weight(c.gate_up.size());
  Floats d_down_weight(c.down.size());
  kernels::ExpertBackward(
      {plan, d, f, c.hidden.data(), c.gate_up.data(), c.down.data(),
       saved.data(), c.d_out.data(), d_gate_up.data(), d_rows.data(),
       activation.data(), d_row_gate.data(), d_hidden.data(),
       d_gate_up_weight.data(), d_down_weight.data()},
      pool);
  Floats d_gates(slots);
  for (int64_t i = 0; i < slots; ++i) {
    d_gates[i] = token_rows[i] < 0 ? 0.0f : d_row_gate[token_rows[i]];
  }
  return {out, d_gates, d_hidden, d_gate_up_weight, d_down_weight};
}

struct Expected {
  Matrix out, d_gates, d_hidden, d_gate_up, d_down;
};

Expected RunReference(const ExpertCase& c) {
  const Matrix hidden = AsMatrix(c.hidden, c.num_tokens, c.d_model);
  const Matrix d_out = AsMatrix(c.d_out, c.num_tokens, c.d_model);
  Expected x;
  x.out = AsMatrix(c.out, c.num_tokens, c.d_model);
  x.d_gates = Matrix::Zero(c.num_tokens, c.max_active);
  x.d_hidden = Matrix::Zero(c.num_tokens, c.d_model);
  x.d_gate_up = Matrix::Zero(c.num_experts, c.d_model * 2 * c.d_ffn);
  x.d_down = Matrix::Zero(c.num_experts, c.d_ffn * c.d_model);
  for (int64_t t = 0; t < c.num_tokens; ++t) {
    for (int64_t i = 0; i < c.num_active[t]; ++i) {
      const int64_t e = c.selected[t * c.max_active + i];
      const double gate = c.gates[t * c.max_active + i];
      const Matrix up = AsMatrix(c.GateUp(e), c.d_model, 2 * c.d_ffn);
      const Matrix down = AsMatrix(c.Down(e), c.d_ffn, c.d_model);
      const Matrix row = reference::ExpertForward(hidden.row(t), up, down);
      const reference::ExpertGradients gradients = reference::ExpertBackward(
          hidden.row(t), up, down, gate * d_out.row(t));
      x.out.row(t) += gate * row;
      x.d_gates(t, i) = d_out.row(t).dot(row.row(0));
      x.d_hidden.row(t) += gradients.d_hidden;
      x.d_gate_up.row(e) += Eigen::Map<const Eigen::RowVectorXd>(
          gradients.d_gate_up_weight.data(), up.size());
      x.d_down.row(e) += Eigen::Map<const Eigen::RowVectorXd>(
          gradients.d_down_weight.data(), down.size());
    }
  }
  return x;
}

// The bounds of the same, row by row.
struct ExpertBounds {
  explicit ExpertBounds(const ExpertCase& c)
      : case_(c),
        out_(c.out.size()),
        d_hidden_(c.hidden.size()),
        d_gate_up_(c.gate_up.size()),
        d_down_(c.down.size()),
        d_gates(c.slots()) {
    for (size_t i = 0; i < c.out.size(); ++i) out_[i].Add(c.out[i]);
    for (int64_t t = 0; t < c.num_tokens; ++t) {
      for (int64_t i = 0; i < c.num_active[t]; ++i) AddRow(t, i);
    }
  }

  static std::vector<Bounded> Get(const std::vector<BoundedSum>& sums) {
    std::vector<Bounded> values;
    for (const BoundedSum& sum : sums) values.push_back(sum.Get());
    return values;
  }
  std::vector<Bounded> out() const { return Get(out_); }
  std::vector<Bounded> d_hidden() const { return Get(d_hidden_); }
  std::vector<Bounded> d_gate_up() const { return Get(d_gate_up_); }
  std::vector<Bounded> d_down() const { return Get(d_down_); }

 private:
  void AddRow(int64_t t, int64_t slot) {
    const ExpertCase& c = case_;
    const int64_t d = c.d_model, f = c.d_ffn;
    const int64_t e = c.selected[t * c.max_active + slot];
    const Bounded row_gate(c.gates[t * c.max_active + slot]);
    const auto up_weight = c.GateUp(e);
    const auto down_weight = c.Down(e);
    std::vector<BoundedSum> row_out(d), row_d_hidden(d);
    BoundedSum d_gate;
    for (int64_t k = 0; k < f; ++k) {
      BoundedSum gate_sum, up_sum, d_hidden_sum;
      for (int64_t j = 0; j < d; ++j) {
        const Bounded x(c.hidden[t * d + j]);
        gate_sum.Add(x * Bounded(up_weight[j * 2 * f + k]));
        up_sum.Add(x * Bounded(up_weight[j * 2 * f + f + k]));
        d_hidden_sum.Add(Bounded(c.d_out[t * d + j]) *
                         Bounded(down_weight[k * d + j]));
      }
      const Bounded z = gate_sum.Get(), up = up_sum.Get();
      const Bounded s = Sigmoid(z), silu = z * s;
      const Bounded activation = silu * up;
      const Bounded d_activation = d_hidden_sum.Get();
      d_gate.Add(activation * d_activation);
      const Bounded scaled = activation * row_gate;
      const Bounded d_scaled = d_activation * row_gate;
      const Bounded d_up = d_scaled * silu;
      const Bounded d_z =
          d_scaled * up * s * (Bounded(1) + z * (Bounded(1) - s));
      for (int64_t j = 0; j < d; ++j) {
        const Bounded x(c.hidden[t * d + j]);
        row_out[j].Add(scaled * Bounded(down_weight[k * d + j]));
        row_d_hidden[j].Add(d_z * Bounded(up_weight[j * 2 * f + k]));
        row_d_hidden[j].Add(d_up * Bounded(up_weight[j * 2 * f + f + k]));
        const int64_t gate_at = (e * d + j) * 2 * f + k;
        d_gate_up_[gate_at].Add(x * d_z);
        d_gate_up_[gate_at + f].Add(x * d_up);
        d_down_[(e * f + k) * d + j].Add(scaled * Bounded(c.d_out[t * d + j]));
      }
    }
    for (int64_t j = 0; j < d; ++j) {
      out_[t * d + j].Add(row_out[j].Get());
      d_hidden_[t * d + j].Add(row_d_hidden[j].Get());
    }
    d_gates[t * c.max_active + slot] = d_gate.Get();
  }

  const ExpertCase& case_;
  std::vector<BoundedSum> out_, d_hidden_, d_gate_up_, d_down_;

 public:
  std::vector<Bounded> d_gates;
};

RC_GTEST_PROP(ExpertDifference, ForwardAndBackwardAreWithinTheirBounds, ()) {
  const ExpertCase c;
  const auto levels =
      RunAtEveryLevel([&](ThreadPool& pool) { return RunKernels(c, pool); });
  const Expected expected = RunReference(c);
  const ExpertBounds bounds(c);
  for (const auto& got : levels) {
    RC_ASSERT(Mismatch("out", got[0], expected.out, bounds.out()) == "");
    RC_ASSERT(Mismatch("d_gates", got[1], expected.d_gates, bounds.d_gates) ==
              "");
    RC_ASSERT(Mismatch("d_hidden", got[2], expected.d_hidden,
                       bounds.d_hidden()) == "");
    RC_ASSERT(Mismatch("d_gate_up_weight", got[3], expected.d_gate_up,
                       bounds.d_gate_up()) == "");
    RC_ASSERT(Mismatch("d_down_weight", got[4], expected.d_down,
                       bounds.d_down()) == "");
  }
}

}  // namespace
}  // namespace softmoe::property_tests
