// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/budget.h"
#include "reference/load_balance.h"
#include "reference/router.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Vector;

constexpr char kAllocation[] = "budget-f64/2";
constexpr char kGradient[] = "budget-gradient-f32/2";
constexpr char kWhole[] = "whole-experts/1";

// K = k L, multiplied in double.
double TotalBudget(const Case& c, const TensorMap& inputs) {
  return ScalarOf(inputs, "mean_active_experts") *
         static_cast<double>(c.Size("layers"));
}

// The formulas over numbers that carry their error.
struct BudgetBounds {
  std::vector<Bounded> allocation, cutoff, d_logits;

  BudgetBounds(const Case& c, const TensorMap& inputs) {
    const Bounded budget = Bounded(ScalarOf(inputs, "mean_active_experts")) *
                           static_cast<double>(c.Size("layers"));
    const reference::BudgetOf<Bounded> allocated =
        reference::formula::AllocateBudget<Bounded>(
            budget, AsBounded(inputs, "budget_logits"));
    allocation = {allocated.allocation.begin(), allocated.allocation.end()};
    const Bounded tau(ScalarOf(inputs, "tau"));
    for (const Bounded& k : allocation) {
      cutoff.push_back(
          reference::formula::Cutoff(tau, k, c.Size("num_experts")));
    }
    const reference::VectorOf<Bounded> d = reference::formula::BudgetVjp(
        budget, allocated.shares, AsBounded(inputs, "d_mean_active"));
    d_logits = {d.begin(), d.end()};
  }

 private:
  static reference::VectorOf<Bounded> AsBounded(const TensorMap& inputs,
                                                const std::string& name) {
    return ToVector(At(inputs, name)).unaryExpr([](double x) {
      return Bounded(x);
    });
  }
};

// ceil(x) of every layer, for an x that is known only to within `error`.
struct Whole {
  Tensor values;
  std::vector<double> doubt;

  explicit Whole(int64_t layers) : values(Dtype::kI32, {layers}) {}
  void Set(int64_t l, int64_t value, double x, double error) {
    values.values[l] = static_cast<double>(value);
    doubt.push_back(std::abs(x - std::round(x)) <= error ? 1 : 0);
  }
  // How many of the values in `got` are the neighbour.
  int64_t Ambiguous(const TensorMap& got, const std::string& output) const {
    const auto found = got.find(output);
    if (found == got.end() || found->second.shape != values.shape) return 0;
    int64_t count = 0;
    for (int64_t l = 0; l < values.size(); ++l) {
      count += found->second.values[l] != values.values[l];
    }
    return count;
  }
};

// How the layers share the budget, and what follows from the share of a layer
// (SPEC.md 2.2).
// inputs   budget_logits, d_mean_active [layers]; mean_active_experts, tau,
//          expansion_factor []
// outputs  mean_active, cutoff [layers] (computed in double: ruling 5),
//          max_active, balance_top (i32, [layers]), d_budget_logits [layers]
class BudgetOp : public Operation {
 public:
  BudgetOp() {
    name_ = "budget";
    text_ =
        "k_l = 1 + (K - L) softmax(budget_logits)_l, K = k L; cutoff and "
        "caps of every layer; d_budget_logits";
    parameters_ = {
        {.name = "layers", .text = "layers", .high = 40},
        {.name = "num_experts", .text = "experts", .low = 2, .high = 128},
        {.name = "mean_active_experts",
         .kind = Kind::kReal,
         .text = "k: experts per token and layer, on average",
         .low = 1,
         .high = 128,
         .at_most = "num_experts",
         .typical = {1.25, 1.5, 2, 7.5},
         .simple = 2},
        {.name = "expansion_factor",
         .kind = Kind::kReal,
         .text = "max_active = ceil(factor k_l - 1e-6)",
         .low = 1,
         .high = 8,
         .typical = {1.375, 2, 4},
         .simple = 2},
        {.name = "tau",
         .kind = Kind::kReal,
         .text = "cutoff = tau k_l / num_experts",
         .low = 0,
         .high = 16,
         .typical = {0, 0.75, 1.25, 1.8},
         .simple = 1},
        {.name = "spread",
         .kind = Kind::kReal,
         .text = "standard deviation of the logits",
         .low = 1e-3,
         .high = 64,
         .typical = {0.125, 1, 1, 8},
         .simple = 1},
    };
    // In the last, one of the two layers mostly has nearly all of the budget.
    edges_ = {"layers=96",
              "layers=2 spread=32 mean_active_experts=7.5 fill=generic"};
    fills_ = {"generic", "subnormal", "huge"};
    outputs_ = {{.name = "mean_active", .in_double = true},
                {.name = "cutoff", .optional = true, .in_double = true},
                {.name = "max_active", .optional = true},
                {.name = "balance_top", .optional = true},
                {.name = "d_budget_logits"}};
    differentiable_ = {"budget_logits"};
    derivations_ = {
        {kAllocation, RawLines(R"(
Once per step, on the host, in double: exp within 2 u, n u for the sum,
every other operation u, u = 2^-53; twice that, for the reference is
computed so, too.)")},
        {kGradient, RawLines(R"(
(K - L) pi_m (g_m - sum pi g) in double as above, rounded once to float:
u |x| + 2^-149, u = 2^-24.)")},
        {kWhole,
         "ceil(x) is exact, unless x is within its own rounding of a whole\n"
         "number: then the neighbour is right, too."}};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window layers = filler.Axis("layers");
    TensorMap inputs;
    inputs["budget_logits"] =
        filler.Data("budget_logits", {layers}, c.Real("spread"));
    inputs["d_mean_active"] = filler.Cotangent("d_mean_active", {layers});
    for (const char* name :
         {"mean_active_experts", "expansion_factor", "tau"}) {
      inputs[name] = filler.Scalar(c.Real(name));
    }
    return inputs;
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    return *ExpectAfter(c, inputs, {});
  }
  std::optional<Expected> ExpectAfter(const Case& c, const TensorMap& inputs,
                                      const TensorMap& got) const override {
    const int64_t layers = c.Size("layers"), experts = c.Size("num_experts");
    const double factor = ScalarOf(inputs, "expansion_factor");
    const double tau = ScalarOf(inputs, "tau");
    const double budget = TotalBudget(c, inputs);
    const reference::Budget allocated = reference::AllocateBudget(
        budget, ToVector(At(inputs, "budget_logits")));
    const BudgetBounds bounds(c, inputs);
    Expected expected;
    auto& outputs = expected.outputs;
    outputs["mean_active"] =
        FromDoubleBounds("mean_active", ToTensor(allocated.allocation),
                         bounds.allocation, kAllocation);
    outputs["cutoff"] =
        FromDoubleBounds("cutoff",
                         ToTensor(Vector(tau * allocated.allocation /
                                         static_cast<double>(experts))),
                         bounds.cutoff, kAllocation);
    Whole caps(layers), tops(layers);
    for (int64_t l = 0; l < layers; ++l) {
      const double k = allocated.allocation[l];
      const double error = outputs["mean_active"].bounds[l];
      const double cap = factor * k - 1e-6;
      caps.Set(l, reference::MaxActive(factor, k, experts), cap,
               factor * error + 0x1p-51 * cap);
      const double top = k - 1e-6;
      tops.Set(l, reference::BalanceTop(k, experts), top,
               error + 0x1p-51 * top);
    }
    expected.decisions = 2 * layers;
    expected.ambiguous =
        caps.Ambiguous(got, "max_active") + tops.Ambiguous(got, "balance_top");
    outputs["max_active"] = Exactly(caps.values, kWhole);
    outputs["max_active"].bounds = caps.doubt;
    outputs["balance_top"] = Exactly(tops.values, kWhole);
    outputs["balance_top"].bounds = tops.doubt;
    outputs["d_budget_logits"] = RoundedToFloat(FromDoubleBounds(
        "d_budget_logits",
        ToTensor(reference::BudgetVjp(budget, allocated,
                                      ToVector(At(inputs, "d_mean_active")))),
        bounds.d_logits, kGradient));
    return expected;
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    return {{"mean_active", ToTensor(reference::AllocateBudget(
                                         TotalBudget(c, inputs),
                                         ToVector(At(inputs, "budget_logits")))
                                         .allocation)}};
  }
};

}  // namespace

const Operation& BudgetOperation() {
  static const BudgetOp operation;
  return operation;
}

}  // namespace softmoe::verify
