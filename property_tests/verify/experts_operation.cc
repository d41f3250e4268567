// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/formula.h"
#include "property_tests/verify/model_operations.h"
#include "reference/expert.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kDerivation[] = "experts-f32/2";

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

// The formula; N is Bounded, or Naive at bf16.
template <typename N>
class ExpertFormula {
 public:
  std::map<std::string, std::vector<N>> outputs;

  ExpertFormula(const Data& x, kernels::Roundings roundings)
      : roundings_(roundings),
        out_(x.rows * x.d),
        d_hidden_(x.rows * x.d),
        d_up_(x.up.size()),
        d_down_(x.down.size()) {
    outputs["d_gates"].resize(x.rows * x.experts);
    for (int64_t t = 0; t < x.rows; ++t) {
      for (int64_t j = 0; j < x.d; ++j) out_[t * x.d + j].Add(x.before(t, j));
      for (int64_t e = 0; e < x.experts; ++e) {
        if (x.active(t, e) != 0) AddRow(x, t, e);
      }
    }
    outputs["out"] = Values(out_);
    outputs["d_hidden"] = Values(d_hidden_);
    outputs["d_gate_up_weight"] = Values(d_up_, roundings);
    outputs["d_down_weight"] = Values(d_down_, roundings);
  }

 private:
  using Sum = kernels::Sum<N>;

  void AddRow(const Data& x, int64_t t, int64_t e) {
    const int64_t d = x.d, f = x.f;
    const N row_gate(x.gates(t, e));
    const double* up_weight = x.up.row(e).data();
    const double* down_weight = x.down.row(e).data();
    std::vector<Sum> row_out(d), row_d_hidden(d);
    Sum d_gate;
    for (int64_t k = 0; k < f; ++k) {
      Sum gate_sum, up_sum, d_hidden_sum;
      for (int64_t j = 0; j < d; ++j) {
        const N value(x.hidden(t, j));
        gate_sum.AddProduct(value, up_weight[j * 2 * f + k]);
        up_sum.AddProduct(value, up_weight[j * 2 * f + f + k]);
        d_hidden_sum.AddProduct(x.d_out(t, j), down_weight[k * d + j]);
      }
      const N z = gate_sum.Get(roundings_), up = up_sum.Get(roundings_);
      const N s = property_tests::Sigmoid(z), silu = z * s;
      const N activation = silu * up;
      const N d_activation = d_hidden_sum.Get(roundings_);
      d_gate.AddProduct(activation, d_activation);
      const N scaled = activation * row_gate;
      const N d_scaled = d_activation * row_gate;
      const N d_up_value = d_scaled * silu;
      const N d_z = d_scaled * up * s * (N(1) + z * (N(1) - s));
      for (int64_t j = 0; j < d; ++j) {
        const N value(x.hidden(t, j));
        row_out[j].AddProduct(scaled, down_weight[k * d + j]);
        row_d_hidden[j].AddProduct(d_z, up_weight[j * 2 * f + k]);
        row_d_hidden[j].AddProduct(d_up_value, up_weight[j * 2 * f + f + k]);
        const int64_t gate_at = (e * d + j) * 2 * f + k;
        d_up_[gate_at].AddProduct(value, d_z);
        d_up_[gate_at + f].AddProduct(value, d_up_value);
        d_down_[(e * f + k) * d + j].AddProduct(scaled, x.d_out(t, j));
      }
    }
    for (int64_t j = 0; j < d; ++j) {
      out_[t * d + j].Add(row_out[j].Get(roundings_));
      d_hidden_[t * d + j].Add(row_d_hidden[j].Get(roundings_));
    }
    outputs["d_gates"][t * x.experts + e] = d_gate.Get(roundings_);
  }

  kernels::Roundings roundings_;
  std::vector<Sum> out_, d_hidden_, d_up_, d_down_;
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
    return {"generic",        "exact",        "subnormal", "one_expert_all",
            "expert_0_and_1", "uneven_ranks", "empty"};
  }
  std::vector<Dtype> dtypes() const override {
    return {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
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
         "d_model.\n" +
             std::string(kRandomRoundingsText)},
        ExactDerivation(),
        NaiveDerivation()};
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
    inputs["gates"] =
        c.fill.name == "exact"
            ? filler.OneOf("gates", {rows, experts}, {-2, -1, 1, 2})
            : filler.Plain("gates", {rows, experts});
    inputs["down_weight"] =
        filler.Plain("down_weight", {experts, inner, width}, 0.3);
    for (int64_t i = 0; i < inputs["gates"].size(); ++i) {
      inputs["gates"].values[i] *= inputs["active"].values[i];
    }
    inputs["gate_up_weight"] = filler.Plain(
        "gate_up_weight", {experts, width, Filler::All(2), inner}, 0.3);
    if (c.fill.name == "exact") MakeExact(c, filler, &inputs);
    inputs["gate_up_weight"].shape = {experts.count, width.count,
                                      2 * inner.count};
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    const Tensor& active = At(inputs, "active");
    const Tensor& gates = At(inputs, "gates");
    const int64_t experts = c.Size("num_experts");
    const std::string no_set = WhyNoIds(inputs, "active", 2);
    if (!no_set.empty()) return no_set;
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
    const std::vector<int64_t> shape = {data.rows, data.d};
    return ExpectByFormula<ExpertFormula>(
        c,
        {{"out", ToTensor(values.out, shape)},
         {"d_hidden", ToTensor(values.d_hidden, shape)},
         {"d_gates", ToTensor(values.d_gates, {data.rows, data.experts})},
         {"d_gate_up_weight",
          ToTensor(values.d_up, {data.experts, data.d, 2 * data.f})},
         {"d_down_weight",
          ToTensor(values.d_down, {data.experts, data.f, data.d})}},
        kDerivation, IsExact(data), data);
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const Data x(c, inputs);
    Matrix out = x.before;
    for (int64_t e = 0; e < x.experts; ++e) {
      const Matrix all = reference::ExpertForward(x.hidden, x.Up(e), x.Down(e));
      for (int64_t t = 0; t < x.rows; ++t) {
        if (x.active(t, e) != 0) out.row(t) += x.gates(t, e) * all.row(t);
      }
    }
    return {{"out", ToTensor(out, {x.rows, x.d})}};
  }

 private:
  // Every z = x G is a multiple of 128, at least 128: there sigmoid is 1 and
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
  // and d_hidden, times two for the gate.
  static bool IsExact(const Data& x) {
    const int64_t activation = 8 * x.d * x.d;
    const int64_t d_gate = activation * x.d * x.f;
    const int64_t out = 2 * activation * x.f * x.experts + 2;
    const int64_t d_hidden = 2 * 2 * (4 + 2) * x.d * x.d * x.f * x.experts;
    const int64_t d_weight = 2 * 2 * activation * x.rows;
    return std::max({d_gate, out, d_hidden, d_weight}) < int64_t{1} << 24;
  }
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
      int64_t wanted = filler.Words("active", {row, kMaxIndex - 1})[0] %
                       (c.Size("max_active") + 1);
      if (fill == "uneven_ranks") wanted = std::max<int64_t>(wanted, 1);
      std::vector<std::pair<uint32_t, int64_t>> order;
      for (int64_t e = 0; e < experts.count; ++e) {
        const int64_t expert = experts.first + e;
        if (fill == "uneven_ranks" && (expert < Filler::kRankExperts) !=
                                          Filler::GoesToTheFirstRank(row)) {
          continue;
        }
        order.emplace_back(filler.Words("active", {row, expert})[0], e);
      }
      std::ranges::sort(order);
      wanted = std::min(wanted, static_cast<int64_t>(order.size()));
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
