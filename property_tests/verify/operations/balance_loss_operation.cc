// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/load_balance.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
namespace formula = reference::formula;
using reference::Vector;

constexpr char kLosses[] = "balance-loss-f64/1";
constexpr char kLossGradient[] = "balance-loss-gradient-f32/1";

// One more rounding, for numbers that carry their error.
Bounded OnceMore(const Bounded& x) { return x.Rounded(); }
double OnceMore(double x) { return x; }

template <typename N>
struct BalanceLossFormula {
  std::vector<N> balance, z, d_probability;

  BalanceLossFormula(const Case& c, const TensorMap& inputs) {
    const int64_t tokens = c.Size("tokens");
    const double coeff = ScalarOf(inputs, "aux_loss_coeff");
    const Vector fractions = formula::Fractions(ToVector(At(inputs, "counts")));
    reference::VectorOf<N> probabilities =
        As<N>(ToVector(At(inputs, "probability_sums")));
    // Fractions, and the product that the sum is multiplied by, are rounded,
    // too.
    for (N& p : probabilities) p = OnceMore(p / static_cast<double>(tokens));
    balance = {
        OnceMore(formula::BalanceLoss<N>(coeff, fractions, probabilities))};
    z = {N(ScalarOf(inputs, "z_loss_coeff")) * N(ScalarOf(inputs, "z_sum")) /
         N(static_cast<double>(tokens))};
    // d loss / d P_ti: that of the `soft` reading at k_l = 1.
    for (const N& d :
         formula::SoftLoadBalanceGradient<N>(coeff, N(1), fractions, tokens)) {
      d_probability.push_back(
          OnceMore(N(ScalarOf(inputs, "group_scale")) * OnceMore(d)));
    }
  }
};

// Auxiliary losses from a router's sums (SPEC.md 2.5).
// inputs   counts (i32), probability_sums: [num_experts]; z_sum,
//          aux_loss_coeff, z_loss_coeff, group_scale: []
// outputs  load_balance_loss, z_loss: [], in double;
//          d_probability [num_experts]
class BalanceLossOp : public Operation {
 public:
  BalanceLossOp() {
    name_ = "balance_loss";
    text_ =
        "coeff E sum_i f_i P_i and coeff_z mean z^2, of a router's sums; "
        "d_probability";
    parameters_ = {
        {.name = "tokens", .text = "of the balance group", .high = 60000},
        {.name = "num_experts", .text = "experts", .high = 140},
        {.name = "largest_count",
         .text = "most tokens that an expert has; 0: nothing is counted",
         .low = 0,
         .high = 9999},
        Coefficient("aux_loss_coeff", "of the load balance"),
        Coefficient("z_loss_coeff", "of the squared logsumexp"),
        Coefficient("group_scale", "of both in the gradient"),
    };
    edges_ = {"num_experts=256", "tokens=200000 largest_count=150000"};
    fills_ = {"generic"};
    outputs_ = {{.name = "load_balance_loss", .in_double = true},
                {.name = "z_loss", .in_double = true},
                {"d_probability"}};
    derivations_ = {
        {kLosses, RawLines(R"(
In double: each fraction, its quotient by the tokens and each product
u, u = 2^-53; the sum n u sum |x|; twice that, for the reference is
computed so, too.)")},
        {kLossGradient,
         "scale coeff E f_i / N in double as above, rounded once to float:\n"
         "u |x| + 2^-149, u = 2^-24."}};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> experts = {filler.Axis("num_experts")};
    TensorMap inputs = {
        {"counts", filler.Ids("counts", experts, c.Size("largest_count") + 1)},
        {"probability_sums",
         filler.Plain("probability_sums", experts,
                      static_cast<double>(c.Size("tokens")))},
        {"z_sum", filler.Plain("z_sum", {}, 1000)}};
    for (const char* name : {"probability_sums", "z_sum"}) {
      for (double& x : inputs[name].values) x = std::abs(x);
    }
    for (const char* name : {"aux_loss_coeff", "z_loss_coeff", "group_scale"}) {
      inputs[name] = filler.Scalar(c.Real(name));
    }
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNoIds(inputs, "counts", c.Size("largest_count") + 1);
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const BalanceLossFormula<double> values(c, inputs);
    const BalanceLossFormula<Bounded> bounds(c, inputs);
    Expected expected;
    expected.outputs["load_balance_loss"] =
        FromDoubleBounds("load_balance_loss", ScalarTensor(values.balance[0]),
                         bounds.balance, kLosses);
    expected.outputs["z_loss"] = FromDoubleBounds(
        "z_loss", ScalarTensor(values.z[0]), bounds.z, kLosses);
    expected.outputs["d_probability"] = RoundedToFloat(FromDoubleBounds(
        "d_probability",
        FromVector(Dtype::kF64, {c.Size("num_experts")}, values.d_probability),
        bounds.d_probability, kLossGradient));
    return expected;
  }

 private:
  static Parameter Coefficient(const std::string& name,
                               const std::string& text) {
    return {.name = name,
            .kind = Kind::kReal,
            .text = text,
            .low = 0,
            .high = 16,
            .typical = {0.01, 0.001, 0.3, 0.0625},
            .simple = 0.5};
  }
};

}  // namespace

const Operation& BalanceLossOperation() {
  static const BalanceLossOp operation;
  return operation;
}

}  // namespace softmoe::verify
