// SPDX-License-Identifier: Apache-2.0
//
// Against naive loops over a number type: Bounded derives the error bound of
// every element, double and Dual prove that the loops' own backward pass is the
// derivative of their forward pass.
#include "kernels/expert_mlp.h"

#include <gtest/gtest.h>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

// A routing of tokens to experts, as BuildRoutePlan makes it.
struct Routing {
  int64_t num_tokens, num_experts, max_active;
  std::vector<int32_t> expert_offsets, row_token, token_rows;
  std::vector<float> row_gate;

  // selected[t] lists the experts of token t.
  Routing(const std::vector<std::vector<int>>& selected, int64_t experts,
          int64_t cap)
      : num_tokens(selected.size()), num_experts(experts), max_active(cap) {
    token_rows.assign(num_tokens * cap, -1);
    std::vector<int64_t> used(num_tokens, 0);
    expert_offsets.push_back(0);
    for (int64_t e = 0; e < experts; ++e) {
      for (int64_t t = 0; t < num_tokens; ++t) {
        for (const int s : selected[t]) {
          if (s != e) continue;
          token_rows[t * cap + used[t]++] =
              static_cast<int32_t>(row_token.size());
          row_token.push_back(static_cast<int32_t>(t));
        }
      }
      expert_offsets.push_back(static_cast<int32_t>(row_token.size()));
    }
    row_gate = RandomFloats(row_token.size(), 40);
    for (float& gate : row_gate) gate = 0.5f + 0.5f * gate;
  }
  int64_t num_routed() const { return row_token.size(); }
  int64_t ExpertOf(int64_t row) const {
    int64_t e = 0;
    while (expert_offsets[e + 1] <= row) ++e;
    return e;
  }
  RoutePlan Plan() const {
    return {num_tokens,      num_experts,           num_routed(),
            max_active,      expert_offsets.data(), row_token.data(),
            row_gate.data(), token_rows.data()};
  }
};

// Tokens with 0 to 3 of 5 experts; expert 1 has one row, expert 3 none.
Routing MixedRouting(int64_t tokens) {
  std::vector<std::vector<int>> selected(tokens);
  for (int64_t t = 0; t < tokens; ++t) {
    if (t % 7 != 3) selected[t].push_back(0);
    if (t == 2) selected[t].push_back(1);
    if (t % 3 == 0) selected[t].push_back(2);
    if (t % 5 == 0) selected[t].push_back(4);
  }
  return Routing(selected, 5, 4);
}

Routing OneExpertReceivesAll(int64_t tokens) {
  return Routing(std::vector<std::vector<int>>(tokens, {2}), 4, 1);
}

Routing NoTokenIsRouted(int64_t tokens) {
  return Routing(std::vector<std::vector<int>>(tokens), 3, 2);
}

template <typename T>
using Array = std::vector<T>;

template <typename T>
struct Inputs {
  Array<T> hidden, gate_up_weight, down_weight, row_gate;
};

template <typename T>
struct Gradients {
  Array<T> hidden, gate_up_weight, down_weight, row_gate;
};

template <typename T>
T Sigmoid(T z) {
  return T(1.0) / (T(1.0) + Exp(T(0.0) - z));
}

struct Case {
  Routing routing;
  int64_t d_model, d_ffn;
  Inputs<float> inputs;
  std::vector<float> residual, d_out;

  Case(Routing r, int64_t model, int64_t ffn)
      : routing(std::move(r)), d_model(model), d_ffn(ffn) {
    const int64_t tokens = routing.num_tokens, experts = routing.num_experts;
    inputs.hidden = RandomFloats(tokens * model, 1);
    inputs.gate_up_weight = RandomFloats(experts * model * 2 * ffn, 2);
    inputs.down_weight = RandomFloats(experts * ffn * model, 3);
    inputs.row_gate = routing.row_gate;
    residual = RandomFloats(tokens * model, 4);
    d_out = RandomFloats(tokens * model, 5);
  }

  // Column j of x_t [G U] for a row.
  template <typename T>
  T GateUp(const Inputs<T>& in, int64_t row, int64_t j) const {
    const int64_t t = routing.row_token[row], e = routing.ExpertOf(row);
    Sum<T> sum;
    for (int64_t i = 0; i < d_model; ++i) {
      sum.Add(in.hidden[t * d_model + i] *
              in.gate_up_weight[(e * d_model + i) * 2 * d_ffn + j]);
    }
    return sum.Get();
  }

  template <typename T>
  Array<T> Forward(const Inputs<T>& in) const {
    Array<Sum<T>> sums(residual.size());
    for (size_t i = 0; i < residual.size(); ++i) sums[i].Add(T(residual[i]));
    for (int64_t r = 0; r < routing.num_routed(); ++r) {
      const int64_t t = routing.row_token[r], e = routing.ExpertOf(r);
      Array<Sum<T>> row(d_model);
      for (int64_t f = 0; f < d_ffn; ++f) {
        const T gate = GateUp(in, r, f), up = GateUp(in, r, d_ffn + f);
        const T activation = gate * Sigmoid(gate) * up * in.row_gate[r];
        for (int64_t j = 0; j < d_model; ++j) {
          row[j].Add(activation *
                     in.down_weight[(e * d_ffn + f) * d_model + j]);
        }
      }
      for (int64_t j = 0; j < d_model; ++j) {
        sums[t * d_model + j].Add(row[j].Get());
      }
    }
    Array<T> out;
    for (const Sum<T>& sum : sums) out.push_back(sum.Get());
    return out;
  }

  template <typename T>
  Gradients<T> Backward(const Inputs<T>& in) const {
    Array<Sum<T>> hidden(in.hidden.size()), gate_up(in.gate_up_weight.size()),
        down(in.down_weight.size());
    Gradients<T> result;
    for (int64_t r = 0; r < routing.num_routed(); ++r) {
      const int64_t t = routing.row_token[r], e = routing.ExpertOf(r);
      Sum<T> d_row_gate;
      Array<Sum<T>> row_hidden(d_model);
      for (int64_t f = 0; f < d_ffn; ++f) {
        const T gate = GateUp(in, r, f), up = GateUp(in, r, d_ffn + f);
        const T sigmoid = Sigmoid(gate), silu = gate * sigmoid;
        Sum<T> sum;
        for (int64_t j = 0; j < d_model; ++j) {
          sum.Add(T(d_out[t * d_model + j]) *
                  in.down_weight[(e * d_ffn + f) * d_model + j]);
        }
        const T d_hidden = sum.Get();
        d_row_gate.Add(silu * up * d_hidden);
        const T activation = silu * up * in.row_gate[r];
        const T scaled = d_hidden * in.row_gate[r];
        const T d_up = scaled * silu;
        const T d_gate =
            scaled * up * (sigmoid * (T(1.0) + gate * (T(1.0) - sigmoid)));
        for (int64_t i = 0; i < d_model; ++i) {
          const int64_t at = (e * d_model + i) * 2 * d_ffn + f;
          row_hidden[i].Add(d_gate * in.gate_up_weight[at]);
          row_hidden[i].Add(d_up * in.gate_up_weight[at + d_ffn]);
          gate_up[at].Add(in.hidden[t * d_model + i] * d_gate);
          gate_up[at + d_ffn].Add(in.hidden[t * d_model + i] * d_up);
          down[(e * d_ffn + f) * d_model + i].Add(activation *
                                                  T(d_out[t * d_model + i]));
        }
      }
      result.row_gate.push_back(d_row_gate.Get());
      for (int64_t i = 0; i < d_model; ++i) {
        hidden[t * d_model + i].Add(row_hidden[i].Get());
      }
    }
    for (const auto& sum : hidden) result.hidden.push_back(sum.Get());
    for (const auto& sum : gate_up) result.gate_up_weight.push_back(sum.Get());
    for (const auto& sum : down) result.down_weight.push_back(sum.Get());
    return result;
  }

  template <typename T>
  Inputs<T> As() const {
    const auto convert = [](const std::vector<float>& x) {
      return Array<T>(x.begin(), x.end());
    };
    return {convert(inputs.hidden), convert(inputs.gate_up_weight),
            convert(inputs.down_weight), convert(inputs.row_gate)};
  }

  std::vector<std::vector<float>> RunForward(ThreadPool& pool) const {
    Guarded gate_up(routing.num_routed() * 2 * d_ffn);
    Guarded row_output(routing.num_routed() * d_model);
    Guarded out(residual);
    ExpertForward({routing.Plan(), d_model, d_ffn, inputs.hidden.data(),
                   inputs.gate_up_weight.data(), inputs.down_weight.data(),
                   gate_up.data(), row_output.data(), out.data()},
                  pool);
    row_output.Take();
    return {out.Take(), gate_up.Take()};
  }

  std::vector<std::vector<float>> RunBackward(ThreadPool& pool) const {
    const int64_t routed = routing.num_routed();
    const auto saved = RunForward(pool)[1];
    Guarded d_gate_up(routed * 2 * d_ffn), d_row_hidden(routed * d_model);
    Guarded activation(routed * d_ffn), d_row_gate(routed);
    Guarded d_hidden(inputs.hidden.size());
    Guarded d_gate_up_weight(inputs.gate_up_weight.size());
    Guarded d_down_weight(inputs.down_weight.size());
    ExpertBackward(
        {routing.Plan(), d_model, d_ffn, inputs.hidden.data(),
         inputs.gate_up_weight.data(), inputs.down_weight.data(), saved.data(),
         d_out.data(), d_gate_up.data(), d_row_hidden.data(), activation.data(),
         d_row_gate.data(), d_hidden.data(), d_gate_up_weight.data(),
         d_down_weight.data()},
        pool);
    d_gate_up.Take();
    d_row_hidden.Take();
    activation.Take();
    return {d_hidden.Take(), d_gate_up_weight.Take(), d_down_weight.Take(),
            d_row_gate.Take()};
  }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.emplace_back(MixedRouting(40), 24, 20);
  cases.emplace_back(MixedRouting(31), 33, 17);
  cases.emplace_back(MixedRouting(9), 16, 550);  // two column groups
  cases.emplace_back(MixedRouting(5), 300, 16);  // two k blocks
  cases.emplace_back(OneExpertReceivesAll(50), 32, 32);
  cases.emplace_back(NoTokenIsRouted(6), 8, 8);
  cases.emplace_back(MixedRouting(1), 1, 1);
  return cases;
}

TEST(ExpertForward, IsWithinTheDerivedBounds) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.d_model * 10000 + c.d_ffn);
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return c.RunForward(pool); });
    const Inputs<Bounded> in = c.As<Bounded>();
    ExpectWithin(got[0], c.Forward(in), "out");
    std::vector<Bounded> gate_up;
    for (int64_t r = 0; r < c.routing.num_routed(); ++r) {
      for (int64_t j = 0; j < 2 * c.d_ffn; ++j) {
        gate_up.push_back(c.GateUp(in, r, j));
      }
    }
    ExpectWithin(got[1], gate_up, "gate_up");
  }
}

TEST(ExpertBackward, IsWithinTheDerivedBounds) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.d_model * 10000 + c.d_ffn);
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return c.RunBackward(pool); });
    const auto want = c.Backward(c.As<Bounded>());
    ExpectWithin(got[0], want.hidden, "d_hidden");
    ExpectWithin(got[1], want.gate_up_weight, "d_gate_up_weight");
    ExpectWithin(got[2], want.down_weight, "d_down_weight");
    ExpectWithin(got[3], want.row_gate, "d_row_gate");
  }
}

// <d_out, J v> = <J^T d_out, v> in double, along random directions v: so the
// gradients that the kernel is held to are those of the forward pass.
TEST(ExpertBackward, ExpectedGradientsAreTheAdjointOfTheForwardPass) {
  const Case c(MixedRouting(12), 10, 9);
  const auto gradients = c.Backward(c.As<double>());
  const auto bounds = c.Backward(c.As<Bounded>());
  double from_backward = 0, magnitude = 0, error = 0, terms = 0;
  const auto direct = [&](const std::vector<float>& x,
                          const std::vector<double>& gradient,
                          const std::vector<Bounded>& bound, uint32_t stream) {
    const auto v = RandomFloats(x.size(), stream);
    std::vector<Dual> moved;
    for (size_t i = 0; i < x.size(); ++i) {
      moved.push_back({x[i], v[i]});
      from_backward += gradient[i] * v[i];
      magnitude += std::abs(gradient[i] * v[i]);
      error += std::abs(v[i]) * bound[i].error;
    }
    terms += x.size();
    return moved;
  };
  const Inputs<Dual> moved{
      direct(c.inputs.hidden, gradients.hidden, bounds.hidden, 11),
      direct(c.inputs.gate_up_weight, gradients.gate_up_weight,
             bounds.gate_up_weight, 12),
      direct(c.inputs.down_weight, gradients.down_weight, bounds.down_weight,
             13),
      direct(c.inputs.row_gate, gradients.row_gate, bounds.row_gate, 14)};
  const auto out = c.Forward(moved);
  double from_forward = 0, forward_magnitude = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    from_forward += c.d_out[i] * out[i].slope;
    forward_magnitude += std::abs(c.d_out[i] * out[i].slope);
  }
  EXPECT_NEAR(
      from_forward, from_backward,
      AdjointBound(error, terms * magnitude + out.size() * forward_magnitude));
  EXPECT_GT(std::abs(from_forward), 1e-3 * magnitude)
      << "the test sees nothing";
}

TEST(ExpertForward, UnroutedTokensKeepTheirResidual) {
  ThreadPool pool(4);
  const Case c(NoTokenIsRouted(6), 8, 8);
  EXPECT_EQ(c.RunForward(pool)[0], c.residual);
}

TEST(ExpertBackward, ExpertsWithoutRowsGetZeroGradients) {
  ThreadPool pool(4);
  const Case c(MixedRouting(40), 24, 20);
  const auto got = c.RunBackward(pool);
  const int64_t size = 24 * 2 * 20;
  for (int64_t i = 3 * size; i < 4 * size; ++i) ASSERT_EQ(got[1][i], 0);
}

// The rows of a token are the same wherever they are in the batch.
TEST(ExpertForward, ATokenDoesNotDependOnTheOthers) {
  ThreadPool pool(4);
  const Case all(OneExpertReceivesAll(50), 40, 24);
  Case one(OneExpertReceivesAll(1), 40, 24);
  const int64_t t = 37;
  one.inputs.gate_up_weight = all.inputs.gate_up_weight;
  one.inputs.down_weight = all.inputs.down_weight;
  std::copy_n(all.inputs.hidden.begin() + t * 40, 40,
              one.inputs.hidden.begin());
  std::copy_n(all.residual.begin() + t * 40, 40, one.residual.begin());
  one.routing.row_gate[0] = all.routing.row_gate[t];
  const auto whole = all.RunForward(pool)[0];
  const auto single = one.RunForward(pool)[0];
  for (int64_t j = 0; j < 40; ++j) EXPECT_EQ(single[j], whole[t * 40 + j]);
}

}  // namespace
}  // namespace softmoe::kernels
