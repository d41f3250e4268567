// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/model_operations.h"
#include "reference/expert.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kDerivation[] = "experts-f32/1";

// The inputs as matrices; weights of expert e by rows of [experts, ...].
struct Data {
  int64_t rows, experts, d, f;
  Matrix hidden, gates, active, before, d_out;
  Matrix up, down;  // [experts, d*2f], [experts, f*d]

  Data(const Case& c, const TensorMap& inputs)
      : rows(c.Size("rows")),
        experts(c.Size("num_experts")),
        d(c.Size("d_model")),
        f(c.Size("d_ffn")),
        hidden(ToMatrix(At(inputs, "hidden"))),
        gates(ToMatrix(At(inputs, "gates"))),
        active(ToMatrix(At(inputs, "active"))),
        before(ToMatrix(At(inputs, "out_before"))),
        d_out(ToMatrix(At(inputs, "d_out"))),
        up(ToMatrix(At(inputs, "gate_up_weight"))),
        down(ToMatrix(At(inputs, "down_weight"))) {}

  Matrix Up(int64_t e) const {
    return Eigen::Map<const Matrix>(up.row(e).data(), d, 2 * f);
  }
  Matrix Down(int64_t e) const {
    return Eigen::Map<const Matrix>(down.row(e).data(), f, d);
  }
};

struct ExpertValues {
  Matrix out, d_gates, d_hidden, d_up, d_down;

  explicit ExpertValues(const Data& x)
      : out(x.before),
        d_gates(Matrix::Zero(x.rows, x.experts)),
        d_hidden(Matrix::Zero(x.rows, x.d)),
        d_up(Matrix::Zero(x.experts, x.d * 2 * x.f)),
        d_down(Matrix::Zero(x.experts, x.f * x.d)) {
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t e = 0; e < x.experts; ++e) {
        if (x.active(t, e) != 0) Add(x, t, e);
      }
    }
  }

 private:
  void Add(const Data& x, int64_t t, int64_t e) {
    const Matrix up = x.Up(e), down = x.Down(e);
    const Matrix row = reference::ExpertForward(x.hidden.row(t), up, down);
    const reference::ExpertGradients gradients = reference::ExpertBackward(
        x.hidden.row(t), up, down, x.gates(t, e) * x.d_out.row(t));
    out.row(t) += x.gates(t, e) * row;
    d_gates(t, e) = x.d_out.row(t).dot(row.row(0));
    d_hidden.row(t) += gradients.d_hidden;
    d_up.row(e) += Eigen::Map<const Eigen::RowVectorXd>(
        gradients.d_gate_up_weight.data(), up.size());
    d_down.row(e) += Eigen::Map<const Eigen::RowVectorXd>(
        gradients.d_down_weight.data(), down.size());
  }
};

struct ExpertBounds {
  std::vector<BoundedSum> out, d_hidden, d_up, d_down;
  std::vector<Bounded> d_gates;

  explicit ExpertBounds(const Data& x)
      : out(x.rows * x.d),
        d_hidden(x.rows * x.d),
        d_up(x.up.size()),
        d_down(x.down.size()),
        d_gates(x.rows * x.experts) {
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t j = 0; j < x.d; ++j) out[t * x.d + j].Add(x.before(t, j));
      for (int64_t e = 0; e < x.experts; ++e) {
        if (x.active(t, e) != 0) AddRow(x, t, e);
      }
    }
  }

 private:
  void AddRow(const Data& x, int64_t t, int64_t e) {
    const int64_t d = x.d, f = x.f;
    const Bounded row_gate(x.gates(t, e));
    const double* up_weight = x.up.row(e).data();
    const double* down_weight = x.down.row(e).data();
    std::vector<BoundedSum> row_out(d), row_d_hidden(d);
    BoundedSum d_gate;
    for (int64_t k = 0; k < f; ++k) {
      BoundedSum gate_sum, up_sum, d_hidden_sum;
      for (int64_t j = 0; j < d; ++j) {
        const Bounded value(x.hidden(t, j));
        gate_sum.Add(value * Bounded(up_weight[j * 2 * f + k]));
        up_sum.Add(value * Bounded(up_weight[j * 2 * f + f + k]));
        d_hidden_sum.Add(Bounded(x.d_out(t, j)) *
                         Bounded(down_weight[k * d + j]));
      }
      const Bounded z = gate_sum.Get(), up = up_sum.Get();
      const Bounded s = property_tests::Sigmoid(z), silu = z * s;
      const Bounded activation = silu * up;
      const Bounded d_activation = d_hidden_sum.Get();
      d_gate.Add(activation * d_activation);
      const Bounded scaled = activation * row_gate;
      const Bounded d_scaled = d_activation * row_gate;
      const Bounded d_up_value = d_scaled * silu;
      const Bounded d_z =
          d_scaled * up * s * (Bounded(1) + z * (Bounded(1) - s));
      for (int64_t j = 0; j < d; ++j) {
        const Bounded value(x.hidden(t, j));
        row_out[j].Add(scaled * Bounded(down_weight[k * d + j]));
        row_d_hidden[j].Add(d_z * Bounded(up_weight[j * 2 * f + k]));
        row_d_hidden[j].Add(d_up_value * Bounded(up_weight[j * 2 * f + f + k]));
        const int64_t gate_at = (e * d + j) * 2 * f + k;
        d_up[gate_at].Add(value * d_z);
        d_up[gate_at + f].Add(value * d_up_value);
        d_down[(e * f + k) * d + j].Add(scaled * Bounded(x.d_out(t, j)));
      }
    }
    for (int64_t j = 0; j < d; ++j) {
      out[t * d + j].Add(row_out[j].Get());
      d_hidden[t * d + j].Add(row_d_hidden[j].Get());
    }
    d_gates[t * x.experts + e] = d_gate.Get();
  }
};

class Experts : public Operation {
 public:
  std::string name() const override { return "experts"; }
  std::string text() const override {
    return "out += sum over active experts of gate * (SiLU(x G) * (x U)) D";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
        {.name = "rows", .text = "tokens", .high = 50},
        {.name = "num_experts", .text = "experts", .high = 7},
        {.name = "max_active",
         .text = "most active experts of a token",
         .high = 7,
         .at_most = "num_experts"},
        {.name = "d_model", .text = "width", .high = 40},
        {.name = "d_ffn", .text = "inner width", .high = 36},
        {.name = "scale",
         .kind = Kind::kReal,
         .text = "standard deviation of hidden",
         .low = 1e-3,
         .high = 16,
         .typical = {1, 1, 8},
         .simple = 1},
    };
    return parameters;
  }
  std::vector<std::string> fills() const override {
    return {"generic",        "exact",          "subnormal",
            "one_expert_all", "expert_0_and_1", "empty"};
  }
  std::vector<OutputSpec> outputs() const override {
    return {{"out"},
            {"d_hidden"},
            {"d_gates"},
            {"d_gate_up_weight"},
            {"d_down_weight"}};
  }
  std::vector<std::string> differentiable() const override {
    return {"hidden", "gates", "gate_up_weight", "down_weight"};
  }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = {
        {kDerivation,
         "x G, x U and what follows: dot products, n u sum |ab| in any order,\n"
         "their errors carried through SiLU (exp within 2 u) and the "
         "products,\n"
         "operation by operation; a token's experts and an expert's tokens "
         "are\n"
         "summed in any order. d_gate = <d_out, E(x)>, summed over d_ffn or\n"
         "d_model."}};
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    const Window experts = filler.Axis("num_experts");
    const Window inner = filler.Axis("d_ffn");
    TensorMap inputs;
    inputs["hidden"] = filler.Data("hidden", {rows, width}, c.Real("scale"));
    inputs["out_before"] = filler.Plain("out_before", {rows, width});
    inputs["d_out"] = filler.Plain("d_out", {rows, width});
    inputs["active"] = Selection(c, filler);
    inputs["gates"] = filler.Plain("gates", {rows, experts});
    for (int64_t i = 0; i < inputs["gates"].size(); ++i) {
      inputs["gates"].values[i] *= inputs["active"].values[i];
    }
    inputs["gate_up_weight"] = filler.Plain(
        "gate_up_weight", {experts, width, Filler::All(2), inner}, 0.3);
    inputs["gate_up_weight"].shape = {experts.count, width.count,
                                      2 * inner.count};
    inputs["down_weight"] =
        filler.Plain("down_weight", {experts, inner, width}, 0.3);
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    const Tensor& active = At(inputs, "active");
    const Tensor& gates = At(inputs, "gates");
    const int64_t experts = c.Size("num_experts");
    for (int64_t t = 0; t < c.Size("rows"); ++t) {
      int64_t count = 0;
      for (int64_t i = t * experts; i < (t + 1) * experts; ++i) {
        count += active.values[i] == 1;
        if (active.values[i] == 0 && gates.values[i] != 0) {
          return "gates must stay 0 where active is";
        }
      }
      if (count > c.Size("max_active")) return "more are active than the cap";
    }
    return "";
  }

  Expected Expect(const Case& c, const TensorMap& inputs,
                  const TensorMap& got) const override {
    (void)got;
    const Data data(c, inputs);
    const ExpertValues values(data);
    const ExpertBounds bounds(data);
    const std::vector<int64_t> shape = {data.rows, data.d};
    Expected expected;
    const auto add = [&](const std::string& name, const Matrix& value,
                         const std::vector<int64_t>& dims,
                         const std::vector<Bounded>& bound) {
      expected.outputs[name] =
          FromBounds(name, ToTensor(value, dims), bound, kDerivation);
    };
    add("out", values.out, shape, Values(bounds.out));
    add("d_hidden", values.d_hidden, shape, Values(bounds.d_hidden));
    add("d_gates", values.d_gates, {data.rows, data.experts}, bounds.d_gates);
    add("d_gate_up_weight", values.d_up, {data.experts, data.d, 2 * data.f},
        Values(bounds.d_up));
    add("d_down_weight", values.d_down, {data.experts, data.f, data.d},
        Values(bounds.d_down));
    return expected;
  }

 private:
  // Some tokens without an expert, often some experts without a token; never
  // more than max_active.
  static Tensor Selection(const Case& c, const Filler& filler) {
    const Window rows = filler.Axis("rows");
    const Window experts = filler.Axis("num_experts");
    const std::string& fill = c.fill.name;
    Tensor active(Dtype::kI32, {rows.count, experts.count});
    for (int64_t t = 0; t < rows.count; ++t) {
      const int64_t row = rows.first + t;
      double* out = &active.values[t * experts.count];
      if (fill == "one_expert_all") out[0] = 1;
      if (fill == "one_expert_all" || fill == "empty") continue;
      const int64_t wanted = filler.Words("active", {row, kMaxIndex - 1})[0] %
                             (c.Size("max_active") + 1);
      std::vector<std::pair<uint32_t, int64_t>> order;
      for (int64_t e = 0; e < experts.count; ++e) {
        order.emplace_back(filler.Words("active", {row, experts.first + e})[0],
                           e);
      }
      std::ranges::sort(order);
      for (int64_t i = 0; i < wanted; ++i) out[order[i].second] = 1;
      if (fill == "expert_0_and_1") {
        out[0] = 0;
        if (experts.count > 1) out[1] = 0;
        if (experts.count > 1 && t == 0) {
          std::fill(out, out + experts.count, 0.0);
          out[1] = 1;
        }
      }
    }
    return active;
  }
};

}  // namespace

const Operation& ExpertsOperation() {
  static const Experts operation;
  return operation;
}

}  // namespace softmoe::verify
