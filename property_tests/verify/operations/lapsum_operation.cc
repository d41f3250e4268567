// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "property_tests/verify/operations/row_bounds.h"

namespace softmoe::verify {
namespace {

// LapSum soft top-k and its gradients (SPEC.md 1).
// inputs   scores [rows, num_experts], mean_active [], temperature [],
//          d_weights [rows, num_experts]
// outputs  weights, d_scores [rows, num_experts], d_mean_active [] (sum over
//          rows), d_temperature [] (optional)
class LapSum : public Operation {
 public:
  LapSum() {
    name_ = "lapsum";
    text_ =
        "p_i = F((r_i - x)/T) with sum_i p_i = k, F Laplace's distribution "
        "function; gradients by r, k and T";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 140,
         .apart = Parameter::Apart::kIfFinite},
        {.name = "num_experts", .text = "scores per row", .high = 256},
        MeanActiveParameter("k: what the weights of a row sum to", 1.0 / 64,
                            256),
        SpreadParameter(),
        TemperatureParameter("T, in score units"),
    };
    edges_ = {"rows=0", "rows=1089", "num_experts=32 mean_active=0.000001",
              "num_experts=32 mean_active=31.99998",
              // Every score is far from the root, or all scores equal the root.
              "num_experts=32 rows=1 temperature=0.25 spread=1 fill=wide_gap",
              "num_experts=2 mean_active=1 fill=all_equal"};
    fills_ = {
        "generic",         "ties",      "near_ties", "plateau",  "wide_gap",
        "wide_gap_beside", "all_equal", "dominant",  "monotone", "whole_k",
        "breakpoint",      "subnormal", "huge"};
    dtypes_ = {Dtype::kF32, Dtype::kF64};
    outputs_ = {{"weights"},
                {"d_scores"},
                {"d_mean_active"},
                {"d_temperature", /*optional=*/true}};
    differentiable_ = {"scores", "mean_active", "temperature"};
    derivations_ = {LapSumWeightsDerivation(), LapSumGradientDerivation()};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    TensorMap inputs;
    const Tensor scores =
        filler.Scores("scores", "rows", "num_experts", c.Real("spread"));
    double mean_active = c.Real("mean_active");
    const double temperature = RoundTo(c.dtype, c.Real("temperature"));
    if (c.fill.name == "breakpoint") {
      // Chosen for the first row; for the others it is a k like any other.
      const int64_t j = filler.Words("breakpoint", {0})[0] % scores.shape[1];
      const reference::Vector first =
          scores.shape[0] > 0 ? reference::Vector(ToMatrix(scores).row(0))
                              : reference::Vector::Zero(scores.shape[1]);
      mean_active = LapSumAtScore(first, j, temperature);
    } else if (c.fill.name == "whole_k" || c.fill.name == "wide_gap") {
      mean_active = filler.WholeActive("num_experts");
    } else if (c.fill.name == "wide_gap_beside") {
      mean_active = filler.BesideWholeActive("num_experts");
    }
    inputs["scores"] = scores;
    inputs["mean_active"] = filler.Scalar(mean_active);
    inputs["temperature"] = filler.Scalar(temperature);
    inputs["d_weights"] = filler.Cotangent(
        "d_weights", {filler.Axis("rows"), filler.Axis("num_experts")});
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNotSoft(inputs, c.Size("num_experts"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    (void)c;
    const reference::Matrix scores = ToMatrix(At(inputs, "scores"));
    const reference::Matrix d_weights = ToMatrix(At(inputs, "d_weights"));
    const double k = ScalarOf(inputs, "mean_active");
    const double temperature = ScalarOf(inputs, "temperature");
    const int64_t rows = scores.rows(), n = scores.cols();

    reference::Matrix weights(rows, n), d_scores(rows, n);
    double d_k = 0, d_t = 0;
    std::vector<Bounded> weight_bounds, d_score_bounds;
    FloatSum d_k_bound, d_t_bound;
    for (int64_t t = 0; t < rows; ++t) {
      const LapSumRow row = BoundLapSumRow(scores.row(t), k, temperature);
      const reference::LapSumGradient gradient =
          reference::LapSumVjp(row.solution, d_weights.row(t));
      weights.row(t) = row.solution.weights;
      d_scores.row(t) = gradient.d_scores;
      d_k += gradient.d_mean_active;
      d_t += gradient.d_temperature;

      std::vector<Bounded> v(d_weights.row(t).begin(), d_weights.row(t).end());
      WeightedGradient bound = BoundLapSumGradient(row, v, temperature);
      AddFlushed(row, v, temperature, &bound);
      weight_bounds.insert(weight_bounds.end(), row.weights.begin(),
                           row.weights.end());
      d_score_bounds.insert(d_score_bounds.end(), bound.gradient.begin(),
                            bound.gradient.end());
      d_k_bound.Add(bound.mean);
      d_t_bound.Add(bound.d_temperature);
    }
    const std::string gradient_id = LapSumGradientDerivation().id;
    Expected expected;
    const std::vector<int64_t> shape = {rows, n};
    expected.outputs["weights"] =
        FromBounds("weights", ToTensor(weights, shape), weight_bounds,
                   LapSumWeightsDerivation().id);
    expected.outputs["d_scores"] = FromBounds(
        "d_scores", ToTensor(d_scores, shape), d_score_bounds, gradient_id);
    expected.outputs["d_mean_active"] =
        FromBounds("d_mean_active", ScalarTensor(d_k),
                   {d_k_bound.Get().Rounded()}, gradient_id);
    expected.outputs["d_temperature"] =
        FromBounds("d_temperature", ScalarTensor(d_t),
                   {d_t_bound.Get().Rounded()}, gradient_id);
    return expected;
  }

  // An implementation may take experts whose weights it flushed to 0 for
  // inactive, all of them or none. Without their v, m has another value, within
  // bounds of the same form. The value nearer to `got` counts.
  std::optional<Expected> ExpectAfter(const Case& c, const TensorMap& inputs,
                                      const TensorMap& got) const override {
    const auto weights = got.find("weights"), mean = got.find("d_mean_active");
    const Tensor& d_weights = At(inputs, "d_weights");
    if (weights == got.end() || weights->second.size() != d_weights.size() ||
        mean == got.end() || mean->second.size() != 1) {
      return {};
    }
    Tensor kept = d_weights;
    for (int64_t i = 0; i < kept.size(); ++i) {
      if (weights->second.values[i] == 0) kept.values[i] = 0;
    }
    const ExpectedOutput all = MeanGradient(inputs, d_weights),
                         without = MeanGradient(inputs, kept);
    const auto distance = [&](const ExpectedOutput& expected) {
      return std::abs(mean->second.values[0] - expected.values.values[0]);
    };
    Expected expected = Expect(c, inputs);
    expected.outputs["d_mean_active"] =
        distance(without) < distance(all) ? without : all;
    return expected;
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)c, (void)choice;
    const reference::Matrix scores = ToMatrix(At(inputs, "scores"));
    reference::Matrix weights(scores.rows(), scores.cols());
    for (int64_t t = 0; t < scores.rows(); ++t) {
      weights.row(t) =
          reference::SolveLapSum(scores.row(t), ScalarOf(inputs, "mean_active"),
                                 ScalarOf(inputs, "temperature"))
              .weights;
    }
    return {
        {"weights", ToTensor(weights, {scores.rows(), scores.cols()})},
        {"above_root", AboveRoot(weights, ScalarOf(inputs, "mean_active"))}};
  }

 private:
  // d_mean_active for these cotangents of the weights.
  static ExpectedOutput MeanGradient(const TensorMap& inputs,
                                     const Tensor& d_weights) {
    const reference::Matrix scores = ToMatrix(At(inputs, "scores"));
    const reference::Matrix v = ToMatrix(d_weights);
    const double temperature = ScalarOf(inputs, "temperature");
    double value = 0;
    FloatSum bound;
    for (int64_t t = 0; t < scores.rows(); ++t) {
      const LapSumRow row = BoundLapSumRow(
          scores.row(t), ScalarOf(inputs, "mean_active"), temperature);
      value += reference::LapSumVjp(row.solution, v.row(t)).d_mean_active;
      const std::vector<Bounded> bounded(v.row(t).begin(), v.row(t).end());
      bound.Add(BoundLapSumGradient(row, bounded, temperature).mean);
    }
    return FromBounds("d_mean_active", ScalarTensor(value),
                      {bound.Get().Rounded()}, LapSumGradientDerivation().id);
  }
};

}  // namespace

const Operation& LapSumOperation() {
  static const LapSum operation;
  return operation;
}

}  // namespace softmoe::verify
