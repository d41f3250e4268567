// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/config/config_fields.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/adamw_case.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/adamw.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Vector;

constexpr char kUpdate[] = "adamw-f32/5";
constexpr char kNorm[] = "norm-f64/3";

// What a driver of the update computes in double at every dtype, with the error
// of one side.
using InDouble = BoundedNumber<DoubleRounding>;

// Squares of floats are exact in double.
InDouble NormOf(const Vector& gradient, double norm, Dtype dtype) {
  if (dtype == Dtype::kF64) {
    BoundedSum<InDouble> squares;
    for (const double x : gradient) squares.AddProduct(x, x);
    return sqrt(squares.Get());
  }
  const double roundings = (static_cast<double>(gradient.size()) + 1) / 2;
  return InDouble(norm).Rounded(roundings);
}

// Exactly 1, unless one of the two sides may clip the norm.
InDouble ClipOf(const InDouble& norm, double clip_norm) {
  if (clip_norm == 0 || norm.value + 2 * norm.error < clip_norm) return 1;
  return {reference::ClipFactor(norm.value, clip_norm),
          (InDouble(clip_norm) / norm).error};
}

// 1 - beta^t, and its reciprocal: the power within 1 ulp, or e^(t ln beta).
InDouble CorrectionOf(double beta, double t) {
  if (beta == 0) return 1;
  const double roundings = 2 + 3 * t * std::abs(std::log(beta));
  return (1 - InDouble(std::pow(beta, t)).Rounded(roundings)).Rounded();
}

using BoundedStep = reference::formula::AdamWStep<Bounded>;

// A step over numbers that carry their error. Every constant of the formula
// is rounded to float once; at f64 it has its own error, in units of float's
// bounds, of which 2^-28 then remain, for both sides (AtF64Derivation).
BoundedStep StepBounds(const TrainingConfig& training, double learning_rate,
                       int64_t completed, const InDouble& norm, Dtype dtype) {
  const double t = static_cast<double>(completed) + 1;
  const auto constant = [&](const InDouble& x) {
    return dtype == Dtype::kF64 ? Bounded(x.value, 0x1p29 * x.error)
                                : Bounded(x.value).Rounded();
  };
  return {.clip = constant(ClipOf(norm, training.clip_norm)),
          .learning_rate = learning_rate,
          .beta1 = training.beta1,
          .beta2 = training.beta2,
          .epsilon = training.adam_epsilon,
          .first_correction = constant(CorrectionOf(training.beta1, t)),
          .second_correction = constant(CorrectionOf(training.beta2, t))};
}

// Updates one element. The error of *p is the largest of three programs: one
// that follows the formula, and two that decay first, which round *p more
// often: one as torch.optim.AdamW does, and one as its fused kernels do.
void UpdateBounds(const BoundedStep& step, const Bounded& gradient,
                  const Bounded& decay, Bounded* p, Bounded* m, Bounded* v) {
  const auto error_after = [&](Bounded decayed) {
    Bounded first_moment = *m, second_moment = *v;
    step.Update(gradient, 0, &decayed, &first_moment, &second_moment);
    return decayed.error;
  };
  double error = 0;
  const Bounded rate = step.learning_rate * decay;
  if (!rate.IsExactZero()) {
    error = std::max(error_after(*p * (1 - rate)), error_after(*p - rate * *p));
  }
  step.Update(gradient, decay, p, m, v);
  p->error = std::max(p->error, error);
}

// A few updates of the optimizer (SPEC.md 4).
// inputs   parameter, first_moment, second_moment [matrix_size + vector_size],
//          gradient [steps, the same]; learning_rate, beta1, beta2, epsilon,
//          weight_decay, clip_norm (0: off) []. Decay applies to the first
//          matrix_size elements only. `completed` updates came before.
// outputs  parameter, first_moment, second_moment after all steps; norm
//          [steps], before clipping, in double (optional)
class AdamW : public Operation {
 public:
  AdamW() {
    name_ = "adamw";
    text_ =
        "steps of AdamW with clipping by the global norm and bias "
        "correction; decay for the matrix part only";
    parameters_ = {
        {.name = "steps", .text = "updates, one after the other", .high = 4},
        {.name = "matrix_size", .text = "elements with decay", .high = 300},
        {.name = "vector_size", .text = "elements without decay", .high = 70},
        {.name = "completed",
         .text = "updates before the first",
         .low = 0,
         .high = 3 << 16,  // the largest is 0 again in 16 bits
         .low_in_fill = "first_update"},
        // At the low end, squares vanish beside the lowest epsilon.
        Real("gradient_scale", "standard deviation of the gradient", 1e-20, 1e3,
             {1e-18, 1e-8, 1e-3, 3, 1e3}, 1),
        Real("learning_rate", "of every step", 0, 1, {0, 1e-5, 1e-3, 0.3},
             0.25),
        Real("beta1", "decay of the first moment", 0, 0.999, {0.9, 0.9, 0.5, 0},
             0.5),
        Real("beta2", "decay of the second moment", 0, 0.9999,
             {0.95, 0.95, 0.999, 0.9999, 0.5}, 0.75),
        Real("epsilon", "added to the root of the second moment",
             kAdamEpsilon.low, 1, {1e-8, 1e-8, 1e-3, kAdamEpsilon.low}, 0.5),
        Real("weight_decay", "decoupled", 0, 1, {0, 0.01, 0.3}, 0),
        Real("clip_norm", "largest norm of a gradient; 0: any", 0, 1e6,
             {0, 0.5, 1e-6, 1e6}, 0),
    };
    edges_ = {"matrix_size=0", "vector_size=0", "matrix_size=40001 steps=1",
              // Many updates: a correction of the second moment that still
              // counts, and the most updates, which 16 bits count as none.
              "completed=3000 beta2=0.999 epsilon=1e-8 learning_rate=0.3 "
              "gradient_scale=3 steps=1 fill=generic",
              "completed=196608 beta2=0.9999 learning_rate=0.3 "
              "gradient_scale=3 steps=1 fill=generic"};
    fills_ = {"generic", "subnormal", "huge", "first_update", "unseen"};
    dtypes_ = {Dtype::kF32, Dtype::kF64};
    outputs_ = {{"parameter"},
                {"first_moment"},
                {"second_moment"},
                {.name = "norm", .optional = true, .in_double = true}};
    derivations_ = {{kUpdate, RawLines(R"(
Scale of clipping and both corrections are rounded to float once; then
every operation u |x|, carried through all steps by numbers with their
error, u = 2^-24. Products below 2^-125 may be flushed; a root errs by
sqrt x - sqrt(x - e), or sqrt e. Gradients are given, so no step is
chaotic. A parameter that decays has the largest bound of three forms,
p - lr (step + decay p), p (1 - lr decay) - lr step and
p - lr decay p - lr step. At f64 the scale has the error of its norm
(norm-f64) and of a quotient, if there may be clipping, and a correction
1 - beta^t that of the power, 2 u as a power and 3 u |t ln beta| as an
exponential, of the difference, which may cancel, and of a reciprocal.)")},
                    {kNorm, RawLines(R"(
Squares of floats are exact in double, n - 1 additions and the root:
(n + 1) u/2 relative, u = 2^-53, for each of both sides. At f64, squares
are rounded, and may underflow, too: (n + 3) u/2.)")}};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const int64_t size = c.Size("matrix_size") + c.Size("vector_size");
    const double scale = c.Real("gradient_scale");
    const std::vector<Window> all = {Filler::All(size)};
    TensorMap inputs;
    inputs["parameter"] = filler.Plain("parameter", all);
    inputs["first_moment"] = filler.Data("first_moment", all, scale);
    inputs["second_moment"] = filler.Data("second_moment", all, scale);
    for (double& v : inputs["second_moment"].values) v *= v;
    RoundValues(inputs["second_moment"]);
    if (c.fill.name == "first_update") {
      for (const char* moment : {"first_moment", "second_moment"}) {
        inputs[moment] = Tensor(c.dtype, {size});
      }
    }
    inputs["gradient"] =
        filler.Data("gradient", {filler.Axis("steps"), all[0]}, scale);
    if (c.fill.name == "unseen" || c.fill.name == "first_update") {
      OmitGradients(c, filler, inputs["gradient"]);
    }
    for (const char* name : {"learning_rate", "beta1", "beta2", "epsilon",
                             "weight_decay", "clip_norm"}) {
      inputs[name] = filler.Scalar(c.Real(name));
    }
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    (void)c;
    for (const double v : At(inputs, "second_moment").values) {
      if (v < 0) return "second_moment must stay at or above 0";
    }
    return "";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const AdamWCase update(c, inputs);
    const double rate = ScalarOf(inputs, "learning_rate");
    const reference::Matrix gradients = ToMatrix(At(inputs, "gradient"));
    Vector parameters = ToVector(At(inputs, "parameter"));
    reference::AdamWState state = {ToVector(At(inputs, "first_moment")),
                                   ToVector(At(inputs, "second_moment")),
                                   update.completed};
    std::vector<Bounded> p = AsBounded(parameters),
                         m = AsBounded(state.first_moment),
                         v = AsBounded(state.second_moment), norm_bounds;
    Vector norms(gradients.rows());
    for (int64_t s = 0; s < gradients.rows(); ++s) {
      const Vector gradient = gradients.row(s);
      norms[s] = reference::AdamWUpdate(update.training, update.layout, rate,
                                        gradient, &parameters, &state);
      const InDouble norm = NormOf(gradient, norms[s], c.dtype);
      norm_bounds.emplace_back(norm.value, 0x1p29 * norm.error);
      const BoundedStep step = StepBounds(update.training, rate,
                                          update.completed + s, norm, c.dtype);
      for (const ParameterTensor& tensor : update.layout.tensors) {
        const Bounded decay(tensor.weight_decay ? update.training.weight_decay
                                                : 0);
        for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
          UpdateBounds(step, gradient[i], decay, &p[i], &m[i], &v[i]);
        }
      }
    }
    Expected expected;
    auto& outputs = expected.outputs;
    outputs["parameter"] =
        FromBounds("parameter", ToTensor(parameters), p, kUpdate);
    outputs["first_moment"] =
        FromBounds("first_moment", ToTensor(state.first_moment), m, kUpdate);
    outputs["second_moment"] =
        FromBounds("second_moment", ToTensor(state.second_moment), v, kUpdate);
    outputs["norm"] =
        FromDoubleBounds("norm", ToTensor(norms), norm_bounds, kNorm);
    return expected;
  }

 private:
  // Sets every second gradient to 0, and the others in the next step; in fill
  // unseen, in a third of the steps, all of them.
  static void OmitGradients(const Case& c, const Filler& filler,
                            Tensor& gradient) {
    const Window steps = filler.Axis("steps");
    const int64_t size = c.Size("matrix_size") + c.Size("vector_size");
    for (int64_t s = 0; s < steps.count; ++s) {
      const int64_t step = steps.first + s;
      const bool all =
          c.fill.name == "unseen" && filler.Words("unseen", {step})[0] % 3 == 0;
      for (int64_t i = 0; i < size; ++i) {
        if (all || (step + i) % 2 == 0) gradient.values[s * size + i] = 0;
      }
    }
  }
  static Parameter Real(const char* name, const char* text, double low,
                        double high, std::vector<double> typical,
                        double simple) {
    return {.name = name,
            .kind = Kind::kReal,
            .text = text,
            .low = low,
            .high = high,
            .typical = std::move(typical),
            .simple = simple};
  }
  static std::vector<Bounded> AsBounded(const Vector& x) {
    return {x.begin(), x.end()};
  }
};

}  // namespace

const Operation& AdamWOperation() {
  static const AdamW operation;
  return operation;
}

}  // namespace softmoe::verify
