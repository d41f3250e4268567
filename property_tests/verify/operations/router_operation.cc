// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "property_tests/routing_margin.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/router.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSettings;
using reference::Vector;

bool Sparse(const Case& c) { return c.Choice("kind") == "sparse"; }

RouterSettings SettingsOf(const Case& c, const TensorMap& inputs) {
  return {.kind = Sparse(c) ? RouterKind::kSparse : RouterKind::kSoftFixed,
          .mean_active = ScalarOf(inputs, "mean_active"),
          .temperature = ScalarOf(inputs, "temperature"),
          .cutoff = ScalarOf(inputs, "cutoff"),
          .max_active = c.Size("max_active"),
          .fallback = c.Choice("fallback") == "top1" ? Fallback::kTop1
                                                     : Fallback::kNone};
}

// Reads the selection in `got`. Returns "" if it is valid: 0 or 1, in the right
// shape, within the cap.
std::string ReadSelection(const Case& c, const TensorMap& got,
                          BoolMatrix* active) {
  const auto found = got.find("active");
  const int64_t rows = active->rows(), experts = active->cols();
  if (found == got.end() ||
      found->second.shape != std::vector<int64_t>{rows, experts}) {
    return "there is no selection to judge";
  }
  for (int64_t t = 0; t < rows; ++t) {
    int64_t count = 0;
    for (int64_t e = 0; e < experts; ++e) {
      const double x = found->second.values[t * experts + e];
      if (x != 0 && x != 1) {
        return fmt::format("active[{}, {}] is {}; it must be 0 or 1", t, e, x);
      }
      (*active)(t, e) = x == 1;
      count += x == 1;
    }
    if (count > c.Size("max_active")) {
      return fmt::format("row {} has {} active experts, the cap is {}", t,
                         count, c.Size("max_active"));
    }
  }
  return "";
}

std::string OwnSelectionDefect(const RouterSettings& settings,
                               const Matrix& scores, const BoolMatrix& active,
                               const Tensor& weights) {
  const BoolMatrix wanted =
      property_tests::OwnSelection(settings, scores, ToMatrix(weights));
  for (int64_t i = 0; i < scores.size(); ++i) {
    if (active.data()[i] == wanted.data()[i]) continue;
    const std::string what =
        fmt::format("row {}, expert {} is {}active", i / scores.cols(),
                    i % scores.cols(), active.data()[i] ? "" : "not ");
    if (settings.kind == RouterKind::kSparse) {
      return what + fmt::format(
                        " with score {:.9g}: the {} largest are, ties to the "
                        "lower expert",
                        scores.data()[i], settings.max_active);
    }
    return what +
           fmt::format(
               " against its own soft weight {:.9g} with cutoff {:.9g} and cap "
               "{}",
               weights.values[i], settings.cutoff, settings.max_active);
  }
  return "";
}

// The routers (SPEC.md 2).
// inputs   scores, d_gates [rows, num_experts]; mean_active, temperature,
//          cutoff []
// outputs  soft_weights, gates, d_scores [rows, num_experts], active (i32, 0 or
//          1), d_mean_active [] (0 if sparse)
class Router : public Operation {
 public:
  Router() {
    name_ = "router";
    text_ =
        "soft: gates = p where p > cutoff, at most max_active by score; "
        "sparse: the max_active largest of softmax(scores)";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 140,
         .apart = Parameter::Apart::kIfFinite},
        {.name = "num_experts", .text = "experts", .low = 2, .high = 128},
        {.name = "max_active",
         .text = "cap; sparse: k",
         .high = 128,
         .at_most = "num_experts"},
        {.name = "kind",
         .kind = Kind::kChoice,
         .text = "which router",
         .choices = {"soft", "sparse"}},
        {.name = "fallback",
         .kind = Kind::kChoice,
         .text = "soft: what a token without an active expert gets",
         .choices = {"none", "top1"}},
        MeanActiveParameter("k_l, soft only", 1, 128),
        {.name = "tau",
         .kind = Kind::kReal,
         .text = "cutoff = tau k_l / num_experts",
         .low = 0,
         .high = 16,
         .typical = {0, 0.75, 1.25, 1.8, 3},
         .simple = 0},
        SpreadParameter(),
        TemperatureParameter("T, soft only, in score units"),
    };
    edges_ = {"rows=0",
              "rows=1089 kind=soft",
              "rows=1089 kind=sparse",
              "num_experts=256 kind=soft",
              "num_experts=256 kind=sparse",
              "num_experts=256 max_active=256 kind=soft",
              "num_experts=256 max_active=256 kind=sparse",
              "num_experts=32 mean_active=31.99998 kind=soft",
              "max_active=1 fallback=top1 kind=soft fill=none_active"};
    fills_ = {"generic",
              "exact",
              "ties",
              "near_ties",
              "plateau",
              "wide_gap",
              "wide_gap_beside",
              "all_equal",
              "dominant",
              "monotone",
              "whole_k",
              "breakpoint",
              "subnormal",
              "huge",
              "none_active",
              "cutoff_exact",
              "cutoff_at_weight",
              "cap_reached",
              "one_expert_all",
              "expert_0_and_1",
              "uneven_ranks"};
    dtypes_ = {Dtype::kF32, Dtype::kF64};
    outputs_ = {{"soft_weights"},
                {"active"},
                {"gates"},
                {"d_scores"},
                {"d_mean_active"}};
    differentiable_ = {"scores", "mean_active"};
    derivations_ = {LapSumWeightsDerivation(),
                    LapSumGradientDerivation(),
                    SoftmaxDerivation(),
                    {"selection/1", RawLines(R"(
Scores are the same on both sides, so cap and top-k leave no doubt. A
soft weight p decides against the cutoff: it may be on the other side
if |p - cutoff| is within p's own bound, or
float flushes p to 0 and the cutoff is 0; then what follows is compared
with the reference under got's selection. And got's selection must be
the one that got's own soft weights demand: no tolerance.)")},
                    ExactDerivation()};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const double experts = static_cast<double>(c.Size("num_experts"));
    TensorMap inputs;
    inputs["scores"] =
        filler.Scores("scores", "rows", "num_experts", c.Real("spread"));
    const std::string& fill = c.fill.name;
    const Matrix scores = ToMatrix(inputs["scores"]);
    const Vector first =
        scores.rows() > 0 ? Vector(scores.row(0)) : Vector::Zero(scores.cols());
    const int64_t chosen = filler.Words(fill, {0})[0] % first.size();
    inputs["temperature"] = filler.Scalar(c.Real("temperature"));
    const double temperature = ScalarOf(inputs, "temperature");

    double mean_active = c.Real("mean_active");
    if (fill == "cutoff_exact") mean_active = experts / 2;
    if (fill == "one_expert_all" || fill == "expert_0_and_1" ||
        fill == "uneven_ranks") {
      mean_active = 1;
    }
    if (fill == "whole_k" || fill == "wide_gap") {
      mean_active = filler.WholeActive("num_experts");
    }
    if (fill == "wide_gap_beside") {
      mean_active = filler.BesideWholeActive("num_experts");
    }
    if (fill == "breakpoint") {
      mean_active = LapSumAtScore(first, chosen, temperature);
    }
    inputs["mean_active"] = filler.Scalar(mean_active);

    double cutoff = c.Real("tau") * mean_active / experts;
    if (fill == "cutoff_exact" || fill == "one_expert_all") cutoff = 0.5;
    if (fill == "expert_0_and_1" || fill == "uneven_ranks") {
      cutoff = 0.25 / experts;
    }
    if (fill == "none_active") cutoff = 1;  // no weight exceeds 1
    if (fill == "cap_reached") cutoff = 0;
    if (fill == "cutoff_at_weight") {
      // Never equal to its rounded value, so that deciding before rounding and
      // deciding after it give the same result.
      const double weight =
          reference::SolveLapSum(first, ScalarOf(inputs, "mean_active"),
                                 temperature)
              .weights[chosen];
      static constexpr int64_t kSteps[] = {1, 2, -1, -2};
      const int64_t step = kSteps[filler.Words(fill, {0})[1] % 4];
      cutoff =
          StepBy(c.dtype, RoundTo(c.dtype, weight), weight < 1e-30 ? 1 : step);
    }
    inputs["cutoff"] = filler.Scalar(cutoff);
    inputs["d_gates"] = filler.Cotangent(
        "d_gates", {filler.Axis("rows"), filler.Axis("num_experts")});
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNotSoft(inputs, c.Size("num_experts"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    return *ExpectAfter(c, inputs, {});
  }
  std::optional<Expected> ExpectAfter(const Case& c, const TensorMap& inputs,
                                      const TensorMap& got) const override {
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const Matrix d_gates = ToMatrix(At(inputs, "d_gates"));
    const RouterSettings settings = SettingsOf(c, inputs);
    const int64_t rows = scores.rows(), n = scores.cols();
    const std::vector<int64_t> shape = {rows, n};
    reference::RouterSaved saved = reference::RouterForward(settings, scores);
    std::vector<Bounded> weights, gates, d_scores;
    const std::vector<LapSumRow> bounds =
        BoundRows(c, settings, scores, &weights);

    Expected expected;
    expected.decisions = rows * n;
    BoolMatrix active = saved.active;
    if (!got.empty()) {
      Select(c, settings, scores, got, &active, &expected);
    }
    saved.active = active;
    saved.gates = reference::formula::Gates<double>(active, saved.soft_weights);
    const reference::RouterGradients gradients =
        reference::RouterBackward(settings, scores, saved, d_gates);
    FloatSum d_k;
    for (int64_t t = 0; t < rows; ++t) {
      std::vector<Bounded> v(n);
      for (int64_t e = 0; e < n; ++e) {
        if (active(t, e)) v[e] = d_gates(t, e);
        gates.push_back(active(t, e) ? weights[t * n + e] : Bounded(0));
      }
      const WeightedGradient row =
          Sparse(c) ? BoundSoftmaxGradient(bounds[t].weights, v)
                    : BoundLapSumGradient(bounds[t], v, settings.temperature);
      d_scores.insert(d_scores.end(), row.gradient.begin(), row.gradient.end());
      if (!Sparse(c)) d_k.Add(row.mean);
    }
    Tensor selection(Dtype::kI32, shape);
    for (int64_t i = 0; i < rows * n; ++i) {
      selection.values[i] = active.data()[i];
    }
    const Tensor d_mean_active = ScalarTensor(gradients.d_mean_active);
    // The weights are 1, 1/2, 1/4, ... and 0, so nothing is rounded.
    const bool exact = Sparse(c) && c.fill.name == "exact";
    const auto add = [&](const std::string& name, const Matrix& values,
                         const std::vector<Bounded>& limits,
                         const Derivation& derivation) {
      const Tensor tensor = ToTensor(values, shape);
      expected.outputs[name] =
          exact
              ? ExactRegime(tensor)
              : FromBounds(name, tensor, limits,
                           Sparse(c) ? SoftmaxDerivation().id : derivation.id);
    };
    add("soft_weights", saved.soft_weights, weights, LapSumWeightsDerivation());
    add("gates", saved.gates, gates, LapSumWeightsDerivation());
    if (!exact) {
      // The gates of inactive experts are exactly 0.
      std::vector<double>& limits = expected.outputs["gates"].bounds;
      for (int64_t i = 0; i < rows * n; ++i) {
        if (!active.data()[i]) limits[static_cast<size_t>(i)] = 0;
      }
    }
    add("d_scores", gradients.d_scores, d_scores, LapSumGradientDerivation());
    expected.outputs["active"] = Exactly(selection, "selection/1");
    expected.outputs["d_mean_active"] =
        Sparse(c)
            ? Exactly(d_mean_active, SoftmaxDerivation().id)
            : FromBounds("d_mean_active", d_mean_active, {d_k.Get().Rounded()},
                         LapSumGradientDerivation().id);
    return expected;
  }

  TensorMap Decide(const Case& c, const TensorMap& inputs,
                   const TensorMap& outputs) const override {
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const BoolMatrix wanted = property_tests::OwnSelection(
        SettingsOf(c, inputs), scores, ToMatrix(At(outputs, "soft_weights")));
    Tensor active(Dtype::kI32, {scores.rows(), scores.cols()});
    std::copy_n(wanted.data(), wanted.size(), active.values.begin());
    return {{"active", active}};
  }

  // The selection makes the outputs jump, so `choice` keeps it.
  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const reference::RouterSaved saved =
        reference::RouterForward(SettingsOf(c, inputs), scores);
    const std::vector<int64_t> shape = {scores.rows(), scores.cols()};
    Tensor active(Dtype::kI32, shape), gates(Dtype::kF64, shape);
    if (choice.contains("active")) {
      active = choice.at("active");
    } else {
      std::copy_n(saved.active.data(), active.size(), active.values.begin());
    }
    for (int64_t i = 0; i < gates.size(); ++i) {
      gates.values[i] =
          active.values[i] == 1 ? saved.soft_weights.data()[i] : 0;
    }
    TensorMap outputs = {{"gates", gates}, {"active", active}};
    if (!Sparse(c)) {
      outputs["above_root"] =
          AboveRoot(saved.soft_weights, ScalarOf(inputs, "mean_active"));
    }
    return outputs;
  }

 private:
  // For the sparse router, only the weights of a row are set.
  static std::vector<LapSumRow> BoundRows(const Case& c,
                                          const RouterSettings& settings,
                                          const Matrix& scores,
                                          std::vector<Bounded>* weights) {
    std::vector<LapSumRow> rows;
    for (int64_t t = 0; t < scores.rows(); ++t) {
      LapSumRow row;
      if (Sparse(c)) {
        row.weights = BoundSoftmaxRow(scores.row(t)).weights;
      } else {
        row = BoundLapSumRow(scores.row(t), settings.mean_active,
                             settings.temperature);
      }
      weights->insert(weights->end(), row.weights.begin(), row.weights.end());
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // Adopts the selection in `got`, and reports it as a defect if it is not
  // within its margin.
  static void Select(const Case& c, const RouterSettings& settings,
                     const Matrix& scores, const TensorMap& got,
                     BoolMatrix* active, Expected* expected) {
    BoolMatrix theirs = *active;
    std::string defect = ReadSelection(c, got, &theirs);
    if (defect.empty()) {
      const property_tests::SelectionCheck check =
          property_tests::CheckSelection(settings, scores, theirs, 0.0);
      defect = check.defect;
      expected->ambiguous = check.ambiguous;
      *active = theirs;
    }
    const auto own = got.find("soft_weights");
    if (defect.empty() && own != got.end() &&
        own->second.shape ==
            std::vector<int64_t>{theirs.rows(), theirs.cols()}) {
      defect = OwnSelectionDefect(settings, scores, theirs, own->second);
    }
    if (!defect.empty()) expected->defects["active"] = defect;
  }
};

}  // namespace

const Operation& RouterOperation() {
  static const Router operation;
  return operation;
}

}  // namespace softmoe::verify
