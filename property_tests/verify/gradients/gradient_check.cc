// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/gradient_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/errors.h"
#include "core/philox.h"
#include "property_tests/verify/engine/diagnose.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/gradients/dual_forward.h"
#include "property_tests/verify/gradients/slope.h"
#include "reference/scalar.h"

namespace softmoe::verify {
namespace {

// Differences more accurate than this share of sum |g_i v_i| reveal nothing
// more.
constexpr double kSharp = 1e-8;
// The elements of a failing gradient are checked one by one if there are at
// most this many.
constexpr int64_t kElementwise = 64;

constexpr char kByDifferences[] = " by differences";
constexpr char kByDuals[] = " by duals";

double Dot(const Tensor& a, const Tensor& b) {
  reference::CompensatedSum sum;
  for (int64_t i = 0; i < a.size(); ++i) sum.Add(a.values[i] * b.values[i]);
  return sum.Get();
}

// The scale of a direction: the magnitude of the input, so that a step of 1 is
// a large one.
double ScaleOf(const Tensor& x) {
  double squares = 0;
  for (const double value : x.values) squares += value * value;
  const double scale =
      std::sqrt(squares / static_cast<double>(std::max<int64_t>(x.size(), 1)));
  return scale > 1e-12 ? scale : 1;
}

// Direction 0 has elements +-1, direction 1 normal ones, times the scale of the
// input. Neither is all ones, to which a constant sum of outputs is blind.
Tensor Direction(const Case& c, const std::string& input, const Tensor& x,
                 int which) {
  const RandomKey key{c.seed, RandomStream::kTestData, c.number,
                      NameKey(fmt::format("direction {} of {}", which, input))};
  const double scale = ScaleOf(x);
  Tensor v(Dtype::kF64, x.shape);
  for (int64_t i = 0; i < v.size(); ++i) {
    const auto words = PhiloxWords(key, static_cast<uint64_t>(i));
    v.values[i] =
        scale * (which == 0 ? (words[0] % 2 == 0 ? 1.0 : -1.0)
                            : NormalsFromWords(words[0], words[1])[0]);
  }
  return v;
}
int NumDirections(const Tensor& x) { return x.size() == 1 ? 1 : 2; }

// One case: its data, the function and the gradient in question.
class GradientCheck {
 public:
  GradientCheck(const Case& c, const Operation& op, Implementation& derivative,
                CaseResult& result)
      : c_(c), op_(op), result_(result), inputs_(InputsOf(op, c)) {
    expected_ = ExpectOf(op, c, inputs_, {});
    base_ = op.Forward(c, inputs_, {});
    for (const auto& [name, tensor] : base_) {
      if (tensor.dtype == Dtype::kI32) choice_[name] = tensor;
    }
    CheckSameFunction();
    cotangents_ = op.Cotangents(inputs_, base_);
    got_ = derivative.Run(op, c, inputs_, 0);
    duals_ = FindDualForward(op.name());
    objective_rounding_ = ObjectiveRounding();
  }

  void Run() {
    for (const std::string& input : op_.differentiable()) {
      const std::string name = "d_" + input;
      const auto found = got_.find(name);
      if (found == got_.end() ||
          found->second.shape != At(inputs_, input).shape) {
        result_.Fail(name + kByDifferences,
                     name + " is missing, or has another shape");
        continue;
      }
      ByDifferences(input, found->second);
      if (duals_ != nullptr) ByDuals(input, found->second);
    }
  }

 private:
  // Forward and Expect must be the same function for each output that both
  // have.
  void CheckSameFunction() const {
    for (const auto& [name, tensor] : base_) {
      const auto found = expected_.outputs.find(name);
      if (found == expected_.outputs.end()) continue;
      const ExpectedOutput& expected = found->second;
      SOFTMOE_CHECK(expected.values.shape == tensor.shape) << name;
      for (int64_t i = 0; i < tensor.size(); ++i) {
        const double value = expected.values.values[i];
        SOFTMOE_CHECK(std::abs(tensor.values[i] - value) <=
                      2 * expected.OwnError(i) + 0x1p-50 * std::abs(value))
            << op_.name() << ": Forward and Expect disagree about " << name
            << IndexText(tensor.shape, i);
      }
    }
  }

  // <w, Forward(inputs)>; choices that could not be kept identify the piece.
  Sample Objective(const TensorMap& inputs) const {
    const TensorMap outputs = op_.Forward(c_, inputs, choice_);
    reference::CompensatedSum sum;
    for (const auto& [name, cotangent] : cotangents_) {
      sum.Add(Dot(cotangent, outputs.at(name)));
    }
    Sample sample = {sum.Get(), 0};
    for (const auto& [name, tensor] : outputs) {
      if (tensor.dtype != Dtype::kI32) continue;
      for (const double value : tensor.values) {
        sample.piece = (sample.piece ^
                        static_cast<uint64_t>(static_cast<int64_t>(value))) *
                       0x100000001b3;  // FNV-1a
        sample.piece += 0x9e3779b9;
      }
    }
    return sample;
  }

  Slope SlopeAlong(const std::string& input, const Tensor& v, double sharp,
                   double largest_step = 0x1p-2) const {
    TensorMap moved = inputs_;
    const std::vector<double>& at = At(inputs_, input).values;
    return MeasureSlope(
        [&](double h) {
          std::vector<double>& x = moved.at(input).values;
          for (size_t i = 0; i < x.size(); ++i) x[i] = at[i] + h * v.values[i];
          return Objective(moved);
        },
        sharp, objective_rounding_ + ArgumentRounding(input, v), largest_step);
  }

  // The slope along v, for judging `got` = <g, v>. The differences sometimes
  // underestimate their own truncation error, so a difference that condemns g
  // is measured again with other steps. A wrong g is wrong at all of them.
  Slope SlopeToJudge(const std::string& input, const Tensor& v, double sharp,
                     double got, double rounding) const {
    Slope slope;
    for (const double step : {0x1p-2, 0.7 * 0x1p-2, 0.45 * 0x1p-2}) {
      const Slope again = SlopeAlong(input, v, sharp, step);
      if (again.kind != Slope::Kind::kUndecided) slope = again;
      if (!(std::abs(got - slope.value) > slope.error + rounding)) break;
    }
    return slope;
  }

  // By how much the objective moves because x + h v is rounded, |h| <= 1/4: to
  // first order, by the reference's own gradient. This matters for scores of
  // 1e4 that nearly tie.
  double ArgumentRounding(const std::string& input, const Tensor& v) const {
    const Tensor& x = At(inputs_, input);
    const Tensor& g = expected_.outputs.at("d_" + input).values;
    double rounding = 0;
    for (int64_t i = 0; i < v.size(); ++i) {
      rounding += std::abs(g.values[i]) * 0x1p-53 *
                  (std::abs(x.values[i]) + std::abs(v.values[i]) / 2);
    }
    return rounding;
  }

  // The error of element i of an output of Forward; 0 for an output that Expect
  // does not have.
  double OwnError(const std::string& output, int64_t i) const {
    const auto expected = expected_.outputs.find(output);
    return expected == expected_.outputs.end() ? 0
                                               : expected->second.OwnError(i);
  }

  // |fl(<w, y>) - <w, y>|: the errors of the outputs and of the sum.
  double ObjectiveRounding() const {
    double rounding = 0;
    for (const auto& [name, cotangent] : cotangents_) {
      const Tensor& y = base_.at(name);
      for (int64_t i = 0; i < y.size(); ++i) {
        rounding += std::abs(cotangent.values[i]) *
                    (OwnError(name, i) + 0x1p-52 * std::abs(y.values[i]));
      }
    }
    return rounding;
  }

  // |<fl(g), v> - <g, v>| for the gradient g of `input`.
  double Rounding(const std::string& input, const Tensor& g,
                  const Tensor& v) const {
    const ExpectedOutput& expected = expected_.outputs.at("d_" + input);
    double rounding = 0;
    for (int64_t i = 0; i < v.size(); ++i) {
      // Each product is rounded once, and the products are added with
      // compensation.
      rounding += std::abs(v.values[i]) *
                  (expected.OwnError(i) + 0x1p-52 * std::abs(g.values[i]));
    }
    return rounding;
  }

  void ByDifferences(const std::string& input, const Tensor& g) {
    const Tensor& x = At(inputs_, input);
    std::vector<double> got, want, bounds;
    OutputResult found;
    for (int which = 0; which < NumDirections(x); ++which) {
      const Tensor v = Direction(c_, input, x, which);
      double magnitude = 0;
      for (int64_t i = 0; i < v.size(); ++i) {
        magnitude += std::abs(g.values[i] * v.values[i]);
      }
      const double rounding = Rounding(input, g, v);
      const Slope slope =
          SlopeToJudge(input, v, kSharp * magnitude, Dot(g, v), rounding);
      Count(slope, found.convergence);
      if (slope.kind == Slope::Kind::kUndecided) continue;
      got.push_back(Dot(g, v));
      want.push_back(slope.value);
      bounds.push_back(slope.error + rounding);
    }
    const bool failed_before = result_.failed();
    Judge("d_" + input + kByDifferences, got, want, bounds, found);
    if (result_.failed() && !failed_before) Explain(input, g);
  }

  // <w, J v>, where J v are the slopes of the outputs.
  reference::Dual AdjointAlong(const std::string& input,
                               const Tensor& v) const {
    DualMap inputs;
    for (const auto& [name, tensor] : inputs_) {
      std::vector<reference::Dual>& duals = inputs[name];
      duals.assign(tensor.values.begin(), tensor.values.end());
      if (name != input) continue;
      for (size_t i = 0; i < duals.size(); ++i) duals[i].slope = v.values[i];
    }
    const DualMap outputs = duals_(c_, inputs, choice_);
    reference::CompensatedSum<reference::Dual> sum;
    for (const auto& [name, cotangent] : cotangents_) {
      const std::vector<reference::Dual>& y = outputs.at(name);
      const Tensor& base = base_.at(name);
      for (int64_t i = 0; i < cotangent.size(); ++i) {
        // Both in double. Forward may sum in another order than the duals,
        // without compensation.
        SOFTMOE_CHECK(std::abs(y[i].value.value - base.values[i]) <=
                      2 * y[i].value.error + OwnError(name, i))
            << op_.name() << ": the dual numbers compute another " << name
            << IndexText(base.shape, i)
            << fmt::format(": {:.17g} instead of {:.17g} +- {:.3g}",
                           y[i].value.value, base.values[i], y[i].value.error);
        sum.Add(cotangent.values[i] * y[i]);
      }
    }
    return sum.Get();
  }

  void ByDuals(const std::string& input, const Tensor& g) {
    const Tensor& x = At(inputs_, input);
    std::vector<double> got, want, bounds;
    OutputResult found;
    for (int which = 0; which < NumDirections(x); ++which) {
      const Tensor v = Direction(c_, input, x, which);
      const reference::Approximate adjoint = AdjointAlong(input, v).slope;
      const bool known = std::isfinite(adjoint.error);
      ++(known ? found.convergence.smooth : found.convergence.undecided);
      if (!known) continue;
      got.push_back(Dot(g, v));
      want.push_back(adjoint.value);
      bounds.push_back(adjoint.error + Rounding(input, g, v));
    }
    Judge("d_" + input + kByDuals, got, want, bounds, found);
  }

  static void Count(const Slope& slope, Convergence& convergence) {
    Convergence one;
    one.smooth = slope.kind == Slope::Kind::kSmooth;
    one.kinks = slope.kind == Slope::Kind::kKink;
    one.undecided = slope.kind == Slope::Kind::kUndecided;
    if (one.smooth) one.lowest_order = one.highest_order = slope.order;
    convergence.Add(one);
  }

  void Judge(const std::string& output, const std::vector<double>& got,
             const std::vector<double>& want, const std::vector<double>& bounds,
             OutputResult found) {
    found.output = output;
    found.derivation = output.ends_with(kByDuals) ? "duals/2" : "differences/1";
    if (got.empty()) {
      found.comparison.status = Status::kMistrusted;
      found.comparison.reason = "no direction could be decided";
    } else {
      found.comparison = Compare(got, want, bounds);
      if (found.comparison.status == Status::kFail) {
        result_.Fail(output, output + ": " + found.comparison.reason);
      }
    }
    result_.outputs.push_back(std::move(found));
  }

  // Checks every element by itself, once a gradient is known to be wrong.
  void Explain(const std::string& input, const Tensor& g) {
    const Tensor& x = At(inputs_, input);
    if (x.size() > kElementwise) return;
    ExpectedOutput slopes;
    slopes.values = Tensor(Dtype::kF64, x.shape);
    slopes.bounds.resize(static_cast<size_t>(x.size()));
    int64_t worst = 0;
    double largest = -1;
    for (int64_t i = 0; i < x.size(); ++i) {
      Tensor unit(Dtype::kF64, x.shape);
      unit.values[i] = ScaleOf(x);
      const Slope slope = SlopeAlong(input, unit, 0);
      slopes.values.values[i] = slope.value / unit.values[i];
      slopes.bounds[i] =
          slope.kind == Slope::Kind::kUndecided
              ? HUGE_VAL
              : (slope.error + Rounding(input, g, unit)) / unit.values[i];
      const double excess =
          std::abs(g.values[i] - slopes.values.values[i]) / slopes.bounds[i];
      if (excess > largest) largest = excess, worst = i;
    }
    result_.hints.push_back(
        fmt::format("d_{}{} is {:.9g}, differences say {:.9g} +- {:.2g}", input,
                    IndexText(x.shape, worst), g.values[worst],
                    slopes.values.values[worst], slopes.bounds[worst]));
    for (std::string& hint : DiagnoseValues(c_, inputs_, g, slopes)) {
      result_.hints.push_back(std::move(hint));
    }
  }

  const Case& c_;
  const Operation& op_;
  CaseResult& result_;
  TensorMap inputs_, base_, choice_, cotangents_, got_;
  Expected expected_;
  DualForward duals_ = nullptr;
  double objective_rounding_ = 0;
};

}  // namespace

CampaignOptions ForGradients(CampaignOptions options) {
  options.command = "grad";
  options.check = CheckGradients;
  options.max_size = 24;  // large enough, and fast
  return options;
}

CaseResult CheckGradients(const Case& c, Implementation& derivative) {
  const auto start = std::chrono::steady_clock::now();
  const Operation& op = FindOperation(c.op);
  CaseResult result;
  result.c = c;
  result.command = "grad";
  if (op.differentiable().empty()) {
    result.status = Status::kUnsupported;
    result.reason = "it has no gradient";
    return result;
  }
  GradientCheck check(c, op, derivative, result);
  check.Run();
  result.JudgeTrust();
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

}  // namespace softmoe::verify
