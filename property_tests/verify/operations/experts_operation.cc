// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/moe_layer.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::BoolMatrix;
using reference::Matrix;

// The inputs as matrices; row e of a weight belongs to expert e.
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
  template <typename N>
  reference::ExpertWeightsOf<N> Weights() const {
    reference::ExpertWeightsOf<N> weights;
    for (int64_t e = 0; e < experts; ++e) {
      weights.gate_up_weight.push_back(As<N>(Up(e)));
      weights.down_weight.push_back(As<N>(Down(e)));
    }
    return weights;
  }
  BoolMatrix IsActive() const { return active.array() != 0; }
};

// Every partial sum of a token's experts may include out_before.
template <typename Rounding, Roundings kSums>
BoundedNumber<Rounding, kSums> Loosened(
    const BoundedNumber<Rounding, kSums>& out, double before, int64_t active) {
  return {out.value, out.error + static_cast<double>(active) *
                                     Rounding::kRoundoff * std::abs(before)};
}
// The naive program follows the formula, and so does the reference.
Naive Loosened(const Naive& out, double, int64_t) { return out; }
double Loosened(double out, double, int64_t) { return out; }

template <typename N>
reference::MatrixOf<N> ExpertsOut(
    const Data& x, const reference::ExpertWeightsOf<N>& weights) {
  namespace formula = reference::formula;
  const BoolMatrix active = x.IsActive();
  reference::MatrixOf<N> out = formula::Plus<N>(
      As<N>(x.before),
      formula::MixExperts<N>(active, As<N>(x.gates), weights, As<N>(x.hidden)));
  for (int64_t t = 0; t < x.rows; ++t) {
    for (int64_t j = 0; j < x.d; ++j) {
      out(t, j) = Loosened(out(t, j), x.before(t, j), active.row(t).count());
    }
  }
  return out;
}

template <typename N>
struct ExpertFormula {
  std::map<std::string, std::vector<N>> outputs;

  explicit ExpertFormula(const Data& x) {
    namespace formula = reference::formula;
    const reference::ExpertWeightsOf<N> weights = x.Weights<N>();
    const formula::MixExpertsGradients<N> gradients =
        formula::MixExpertsBackward<N>(x.IsActive(), As<N>(x.gates), weights,
                                       As<N>(x.hidden), As<N>(x.d_out));
    outputs["out"] = Flat<N>(ExpertsOut<N>(x, weights));
    outputs["d_hidden"] = Flat<N>(gradients.d_hidden);
    outputs["d_gates"] = Flat<N>(gradients.d_gates);
    for (int64_t e = 0; e < x.experts; ++e) {
      Append(gradients.d_weights.gate_up_weight[e], "d_gate_up_weight");
      Append(gradients.d_weights.down_weight[e], "d_down_weight");
    }
  }

 private:
  void Append(const reference::MatrixOf<N>& matrix, const std::string& output) {
    const std::vector<N> elements = Flat<N>(matrix);
    outputs[output].insert(outputs[output].end(), elements.begin(),
                           elements.end());
  }
};

// The active experts of every token, weighted by their gates (SPEC.md 3.2).
// inputs   hidden [rows, d_model], gates [rows, experts], active (i32, 0 or 1),
//          gate_up_weight [experts, d_model, 2*d_ffn], down_weight [experts,
//          d_ffn, d_model], out_before [rows, d_model], d_out
// outputs  out (out_before is added), d_hidden, d_gates (0 where inactive),
//          d_gate_up_weight, d_down_weight
class Experts : public Operation {
 public:
  Experts() {
    name_ = "experts";
    text_ =
        "out += sum over active experts of gate * (SiLU(x G) * (x U)) D; "
        "gate_up_weight has the columns of G, then those of U";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 50,
         .apart = Parameter::Apart::kAlways},
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
         .typical = {1, 1, 8, 16},
         .simple = 1},
    };
    edges_ = {"rows=0", "d_ffn=550", "d_model=300", "d_model=264 d_ffn=272",
              "rows=130 num_experts=40",
              "num_experts=130 max_active=7 d_model=8 d_ffn=5 fill=exact",
              "num_experts=130 max_active=7 d_model=8 d_ffn=5 fill=generic",
              "rows=300 d_model=4 d_ffn=4 fill=one_expert_all",
              // Arguments of SiLU below -88, where e^-z exceeds float.
              "d_model=96 d_ffn=24 rows=20 scale=16 fill=generic"};
    fills_ = {"generic",        "exact",        "subnormal", "one_expert_all",
              "expert_0_and_1", "uneven_ranks", "empty",     "zero_rows"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{"out"},
                {"d_hidden"},
                {.name = "d_gates", .in_float = true},
                {.name = "d_gate_up_weight", .in_float = true},
                {.name = "d_down_weight", .in_float = true}};
    differentiable_ = {"hidden", "gates", "gate_up_weight", "down_weight"};
    derivations_ = WithStoredOperands({
        {kDerivation, RawLines(R"(
x G, x U and what follows: dot products, n u sum |ab| in any order,
their errors carried through SiLU (exp within 2 u) and the products,
operation by operation; a token's experts and an expert's tokens are
summed in any order. d_gate = <d_out, E(x)>, summed over d_ffn or
d_model.
)") + kRandomRoundingsText},
        ExactDerivation(),
        NaiveDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    const Window experts = filler.Axis("num_experts");
    const Window inner = filler.Axis("d_ffn");
    TensorMap inputs;
    inputs["hidden"] = filler.Data("hidden", {rows, width}, c.Real("scale"));
    for (int64_t i = 0; i < inputs["hidden"].size(); ++i) {
      if (filler.IsZeroRow(rows.first + i / width.count)) {
        inputs["hidden"].values[i] = 0;
      }
    }
    inputs["out_before"] = filler.Plain("out_before", {rows, width});
    inputs["d_out"] = filler.Cotangent("d_out", {rows, width});
    inputs["active"] = Selection(c, filler);
    inputs["gates"] =
        c.fill.name == "exact"
            ? filler.InFloat().OneOf("gates", {rows, experts}, {-2, -1, 1, 2})
            : filler.InFloat().Plain("gates", {rows, experts});
    inputs["down_weight"] =
        filler.Plain("down_weight", {experts, inner, width}, 0.3);
    KeepActive(inputs["active"], &inputs["gates"]);
    ZeroSomeGates(filler, &inputs["gates"]);
    inputs["gate_up_weight"] = filler.Plain(
        "gate_up_weight", {experts, width, Filler::All(2), inner}, 0.3);
    ZeroSomeColumnsOfG(filler, &inputs["gate_up_weight"]);
    if (c.fill.name == "exact") MakeExact(c, filler, &inputs);
    inputs["gate_up_weight"].shape = {experts.count, width.count,
                                      2 * inner.count};
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNoSelection(c, inputs);
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Data data(c, inputs);
    const ExpertFormula<double> values(data);
    const std::vector<int64_t> shape = {data.rows, data.d};
    const auto tensor = [&](const char* output, std::vector<int64_t> shape) {
      Tensor values_of(Dtype::kF64, std::move(shape));
      values_of.values = values.outputs.at(output);
      return values_of;
    };
    return ExpectByFormula<ExpertFormula, StoredResults>(
        *this, c,
        {{"out", tensor("out", shape)},
         {"d_hidden", tensor("d_hidden", shape)},
         {"d_gates", tensor("d_gates", {data.rows, data.experts})},
         {"d_gate_up_weight",
          tensor("d_gate_up_weight", {data.experts, data.d, 2 * data.f})},
         {"d_down_weight",
          tensor("d_down_weight", {data.experts, data.f, data.d})}},
        kDerivation,
        IsExact(data, c.dtype) ? Exact::kForOurs : Exact::kForNobody, data);
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const Data x(c, inputs);
    return {{"out", ToTensor(ExpertsOut<double>(x, x.Weights<double>()),
                             {x.rows, x.d})}};
  }

 private:
  static constexpr char kDerivation[] = "experts-f32/3";

  // SiLU has an argument of 0 in these columns, even in rows that are not 0.
  static void ZeroSomeColumnsOfG(const Filler& filler, Tensor* gate_up_weight) {
    const Window inner = filler.Axis("d_ffn");
    for (int64_t i = 0; i < gate_up_weight->size(); ++i) {
      const bool is_gate = i / inner.count % 2 == 0;
      if (is_gate && filler.IsZeroRow(inner.first + i % inner.count)) {
        gate_up_weight->values[i] = 0;
      }
    }
  }

  // Every z = x G is a multiple of 128 and at least 128, where sigmoid is 1 and
  // SiLU(z) = z. In units of 128, z <= 4 d_model; |x U| <= 2 d_model, and
  // |D^T d_out| <= d_model.
  static void MakeExact(const Case& c, const Filler& filler,
                        TensorMap* inputs) {
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    const Window experts = filler.Axis("num_experts");
    const Window inner = filler.Axis("d_ffn");
    TensorMap& all = *inputs;
    all["hidden"] = filler.OneOf("hidden", {rows, width}, {1, 2});
    all["out_before"] =
        filler.OneOf("out_before", {rows, width}, {-256, -128, 0, 128});
    all["d_out"] = filler.OneOf("d_out", {rows, width}, {-1, 0, 1});
    all["down_weight"] =
        filler.OneOf("down_weight", {experts, inner, width}, {-1, 0, 1});
    Tensor& up = all["gate_up_weight"];
    const std::vector<Window> axes = {experts, width, Filler::All(2), inner};
    up = filler.OneOf("gate_up_weight", axes, {-1, 0, 1});
    const Tensor gate = filler.OneOf("gate_weight", axes, {128, 256});
    for (int64_t i = 0; i < up.size(); ++i) {
      if (i / inner.count % 2 == 0) up.values[i] = gate.values[i];
    }
    (void)c;
  }
  // The largest sums, in units of 128: d_gates, and what an expert adds to out
  // and d_hidden, times two for the gate. At bf16, also the largest result of a
  // product that is stored, which is what an expert adds to d_hidden, without
  // the gate, which is a power of 2.
  static bool IsExact(const Data& x, Dtype dtype) {
    const int64_t activation = 8 * x.d * x.d;
    const int64_t d_gate = activation * x.d * x.f;
    const int64_t out = 2 * activation * x.f * x.experts + 2;
    const int64_t d_row = 2 * (4 + 2) * x.d * x.d * x.f;
    if (dtype == Dtype::kBf16 && d_row > 256) return false;
    const int64_t d_hidden = 2 * d_row * x.experts;
    const int64_t d_weight = 2 * 2 * activation * x.rows;
    return std::max({d_gate, out, d_hidden, d_weight}) < int64_t{1} << 24;
  }
};

}  // namespace

const Operation& ExpertsOperation() {
  static const Experts operation;
  return operation;
}

}  // namespace softmoe::verify
