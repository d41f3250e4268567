// SPDX-License-Identifier: Apache-2.0
//
// The CUDA kernels between a layer's matrix products, on a simulated device,
// against the reference: permute and unpermute, SwiGLU, token cross-entropy;
// and the embedding's gradient, for any vocabulary, against the CPU.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cuda/layer_kernels.h"
#include "kernels/embedding.h"
#include "property_tests/error_bounds.h"
#include "property_tests/testing/generators.h"
#include "property_tests/testing/simulated_case.h"
#include "reference/embedding.h"
#include "reference/expert.h"
#include "reference/lm_head.h"

namespace softmoe::property_tests {
namespace {

namespace formula = reference::formula;

// Tokens with 0 to max_active rows each.
struct RowsCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 30);
  int64_t max_active = *rc::gen::inRange<int64_t>(1, 5);
  int64_t size = *rc::gen::inRange<int64_t>(1, 70);  // d_model or d_ffn
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  std::vector<int32_t> row_token, token_rows;
  Floats row_gate;

  RowsCase() {
    const auto active = RandomIds(num_tokens, max_active + 1, seed, 1);
    // Any order of rows will do; backwards differs from the tokens' order.
    int32_t rows = 0;
    for (const int32_t count : active) rows += count;
    row_token.resize(rows);
    row_gate = NormalFloats(rows, seed, 2);
    for (int64_t t = 0; t < num_tokens; ++t) {
      for (int64_t i = 0; i < max_active; ++i) {
        token_rows.push_back(i < active[t] ? --rows : -1);
        if (i < active[t]) row_token[rows] = static_cast<int32_t>(t);
      }
    }
  }
  int64_t num_rows() const { return static_cast<int64_t>(row_token.size()); }
  kernels::RoutePlan Plan(DeviceArrays& arrays) const {
    kernels::RoutePlan plan = {};
    plan.num_tokens = num_tokens;
    plan.num_routed = num_rows();
    plan.max_active = max_active;
    plan.row_token = arrays.In(row_token);
    plan.row_gate = arrays.In(row_gate);
    plan.token_rows = arrays.In(token_rows);
    return plan;
  }
};

reference::MatrixOf<Bounded> AsBounded(const reference::Matrix& matrix) {
  return matrix.unaryExpr([](double x) { return Bounded(x); });
}
std::vector<Bounded> Flat(const reference::MatrixOf<Bounded>& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

// Bounds on the sum of each id's rows [., d], in any order.
std::vector<Bounded> SumBounds(const std::vector<int32_t>& ids,
                               const Floats& rows, int64_t num_ids, int64_t d) {
  const int64_t count = static_cast<int64_t>(ids.size());
  return Flat(formula::EmbeddingBackward<Bounded>(
      ids, AsBounded(AsMatrix(rows, count, d)), num_ids));
}

RC_GTEST_PROP(LayerKernels, PermuteCopiesAndUnpermuteAdds, ()) {
  const RowsCase c;
  const int64_t n = c.num_tokens, d = c.size;
  const Floats hidden = NormalFloats(n * d, c.seed, 3);
  const Floats row_values = NormalFloats(c.num_rows() * d, c.seed, 4);
  const Floats residual = NormalFloats(n * d, c.seed, 5);
  const auto got = RunInTheSimulator([&] {
    Floats rows(c.num_rows() * d), out(n * d, NAN), added = residual;
    DeviceArrays arrays;
    const kernels::RoutePlan plan = c.Plan(arrays);
    const float* values = arrays.In(row_values);
    kernels::isa_shim::Permute({plan, d, arrays.In(hidden), arrays.InOut(rows)},
                               arrays.stream());
    kernels::isa_shim::Unpermute({plan, d, values, false, arrays.InOut(out)},
                                 arrays.stream());
    kernels::isa_shim::Unpermute({plan, d, values, true, arrays.InOut(added)},
                                 arrays.stream());
    arrays.TakeBack();
    return std::vector<Floats>{rows, out, added};
  });

  const reference::Matrix rows =
      reference::EmbeddingForward(c.row_token, AsMatrix(hidden, n, d));
  for (int64_t i = 0; i < c.num_rows() * d; ++i) {
    RC_ASSERT(got[0][i] == rows.data()[i]);
  }
  // Unpermute is the transpose of permute: the embedding's gradient.
  const reference::Matrix sums = reference::EmbeddingBackward(
      c.row_token, AsMatrix(row_values, c.num_rows(), d), n);
  const std::vector<Bounded> sum_bounds =
      SumBounds(c.row_token, row_values, n, d);
  // The existing value counts as one more row of each token.
  std::vector<int32_t> ids = c.row_token;
  Floats all = row_values;
  for (int64_t t = 0; t < n; ++t) ids.push_back(static_cast<int32_t>(t));
  all.insert(all.end(), residual.begin(), residual.end());
  const std::vector<Bounded> added_bounds = SumBounds(ids, all, n, d);
  RC_ASSERT(Mismatch("out", got[1], sums, sum_bounds) == "");
  const reference::Matrix expected = AsMatrix(residual, n, d) + sums;
  RC_ASSERT(Mismatch("out +=", got[2], expected, added_bounds) == "");
}

RC_GTEST_PROP(LayerKernels, SwigluIsWithinItsBounds, ()) {
  const RowsCase c;
  const int64_t rows = c.num_rows(), f = c.size;
  RC_PRE(rows > 0);
  // Chosen so that e^-z neither overflows nor is flushed.
  const double scale = *rc::gen::element(0.1, 1.0, 10.0);
  const Floats gate_up = NormalFloats(rows * 2 * f, c.seed, 3, scale);
  const Floats d_activation = NormalFloats(rows * f, c.seed, 4);
  const auto got = RunInTheSimulator([&] {
    Floats forward(rows * f), d_gate_up(rows * 2 * f), again(rows * f);
    Floats d_row_gate(rows);
    DeviceArrays arrays;
    const kernels::RoutePlan plan = c.Plan(arrays);
    const float* inputs = arrays.In(gate_up);
    kernels::isa_shim::SwigluForward({plan, f, inputs, arrays.InOut(forward)},
                                     arrays.stream());
    kernels::isa_shim::SwigluBackward(
        {plan, f, inputs, arrays.In(d_activation), f, arrays.InOut(d_gate_up),
         arrays.InOut(again), arrays.InOut(d_row_gate)},
        arrays.stream());
    arrays.TakeBack();
    // The same bits, so backward need not keep the activation.
    for (int64_t i = 0; i < rows * f; ++i) RC_ASSERT(forward[i] == again[i]);
    return std::vector<Floats>{forward, d_gate_up, d_row_gate};
  });

  reference::Matrix activation(rows, f), d_gate_up(rows, 2 * f);
  reference::Matrix d_row_gate(rows, 1);
  std::vector<Bounded> activations, d_gate_ups(rows * 2 * f), d_row_gates;
  for (int64_t r = 0; r < rows; ++r) {
    const double row_gate = c.row_gate[r];
    double dot = 0;
    BoundedSum<Bounded> bounded_dot;
    for (int64_t j = 0; j < f; ++j) {
      const float z = gate_up[r * 2 * f + j], up = gate_up[r * 2 * f + f + j];
      const double d = d_activation[r * f + j];
      activation(r, j) = row_gate * reference::Silu(z) * up;
      d_gate_up(r, j) = row_gate * d * up * reference::SiluDerivative(z);
      d_gate_up(r, f + j) = row_gate * d * reference::Silu(z);
      dot += d * reference::Silu(z) * up;

      const Bounded silu = formula::Silu<Bounded>(z);
      activations.push_back(silu * Bounded(up) * Bounded(row_gate));
      const Bounded scaled = Bounded(d) * Bounded(row_gate);
      d_gate_ups[r * 2 * f + j] =
          scaled * Bounded(up) * formula::SiluDerivative<Bounded>(z);
      d_gate_ups[r * 2 * f + f + j] = scaled * silu;
      bounded_dot.Add(silu * Bounded(up) * Bounded(d));
    }
    d_row_gate(r, 0) = dot;
    d_row_gates.push_back(bounded_dot.Get());
  }
  RC_ASSERT(Mismatch("activation", got[0], activation, activations) == "");
  RC_ASSERT(Mismatch("d_gate_up", got[1], d_gate_up, d_gate_ups) == "");
  RC_ASSERT(Mismatch("d_row_gate", got[2], d_row_gate, d_row_gates) == "");
}

struct LogitsCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 6);
  int64_t vocab_size = *rc::gen::element<int64_t>(1, 2, 31, 33, 255, 600);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double spread = *rc::gen::element(0.1, 1.0, 30.0);
  Floats logits = NormalFloats(num_tokens * vocab_size, seed, 1, spread);
  std::vector<int32_t> targets = RandomIds(num_tokens, vocab_size, seed, 2);
  float grad_scale = 0.0625f;

  // {token losses, d_logits}
  std::vector<Floats> Run() const {
    return RunInTheSimulator([&] {
      Floats loss(num_tokens), loss_only(num_tokens);
      Floats d_logits = logits, scratch = logits;
      DeviceArrays arrays;
      const int32_t* ids = arrays.In(targets);
      float* const in_place = arrays.InOut(d_logits);
      kernels::isa_shim::TokenCrossEntropy(
          {num_tokens, vocab_size, ids, grad_scale, in_place, in_place,
           arrays.InOut(loss)},
          arrays.stream());
      float* const not_wanted = nullptr;
      kernels::isa_shim::TokenCrossEntropy(
          {num_tokens, vocab_size, ids, grad_scale, arrays.InOut(scratch),
           not_wanted, arrays.InOut(loss_only)},
          arrays.stream());
      arrays.TakeBack();
      RC_ASSERT(SameBits<float>({loss}, {loss_only}));
      return std::vector<Floats>{loss, d_logits};
    });
  }
};

RC_GTEST_PROP(LayerKernels, CrossEntropyIsWithinItsBounds, ()) {
  const LogitsCase c;
  const auto got = c.Run();
  const reference::Matrix logits =
      AsMatrix(c.logits, c.num_tokens, c.vocab_size);
  const reference::MatrixOf<Bounded> bounded = AsBounded(logits);
  const std::vector<Bounded> losses =
      Flat(formula::TokenLosses<Bounded>(bounded, c.targets));
  const std::vector<Bounded> d_logits =
      Flat(formula::TokenLossesBackward<Bounded>(
          formula::SoftmaxRows<Bounded>(bounded), c.targets,
          reference::VectorOf<Bounded>::Constant(c.num_tokens,
                                                 Bounded(c.grad_scale))));
  RC_ASSERT(Mismatch("loss", got[0], reference::TokenLosses(logits, c.targets),
                     losses) == "");
  RC_ASSERT(
      Mismatch("d_logits", got[1],
               reference::TokenLossesBackward(
                   logits, c.targets,
                   reference::Vector::Constant(c.num_tokens, c.grad_scale)),
               d_logits) == "");
}

// A non-finite logit must not vanish in a maximum, nor reach another token.
RC_GTEST_PROP(LayerKernels, CrossEntropyShowsBadLogitsInTheirTokenOnly, ()) {
  LogitsCase c;
  const auto clean = c.Run();
  const int64_t token = *Uniform(0, c.num_tokens);
  const int64_t at = *Uniform(0, c.vocab_size);
  c.logits[token * c.vocab_size + at] =
      *rc::gen::element(std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::infinity());
  const auto got = c.Run();
  for (int64_t t = 0; t < c.num_tokens; ++t) {
    const float loss = got[0][t];
    RC_ASSERT((t == token ? std::isnan(loss) : loss == clean[0][t]));
  }
}

// One, two and three passes of the sort; ids from the whole vocabulary, or few.
RC_GTEST_PROP(LayerKernels, EmbeddingGradientHasTheBitsOfTheCpu, ()) {
  const int64_t vocab_size =
      *rc::gen::element<int64_t>(1, 2, 255, 256, 257, 3000, 65536, 65537);
  const int64_t n = *rc::gen::element<int64_t>(0, 1, 256, 257, 700);
  const int64_t d = *Uniform(1, 4);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const int64_t kinds = *rc::gen::element<int64_t>(1, 3, vocab_size);
  auto ids = RandomIds(n, std::min(kinds, vocab_size), seed, 1);
  // Counted from the end, where the upper bits vary.
  for (int32_t& id : ids) id = static_cast<int32_t>(vocab_size - 1 - id);
  const Floats d_out = NormalFloats(n * d, seed, 2);
  ExpectTheBitsOfTheCpu(
      kernels::EmbeddingBackward, kernels::isa_shim::EmbeddingBackward,
      [&](auto& arrays, const auto& backward) {
        Floats d_table(vocab_size * d, NAN);
        std::vector<int32_t> scratch(
            std::max(n + vocab_size + 1, kernels::EmbeddingDeviceScratch(n)));
        backward({n, d, vocab_size, arrays.In(ids), arrays.In(d_out),
                  arrays.InOut(d_table), arrays.InOut(scratch)});
        return std::vector<Floats>{d_table};
      });
}

}  // namespace
}  // namespace softmoe::property_tests
