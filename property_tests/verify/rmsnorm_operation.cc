// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/model_operations.h"
#include "reference/rmsnorm.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;
using reference::Vector;

constexpr char kDerivation[] = "rmsnorm-f32/1";

struct RmsNormBounds {
  std::vector<Bounded> y, rstd, d_x;
  std::vector<BoundedSum> d_weight;

  RmsNormBounds(const Matrix& x, const Vector& weight, double epsilon,
                const Matrix& d_y, const Matrix& before)
      : d_weight(x.cols()) {
    const int64_t d = x.cols();
    const Bounded width(static_cast<double>(d));
    for (int64_t t = 0; t < x.rows(); ++t) {
      BoundedSum squares, dot;
      for (int64_t j = 0; j < d; ++j) {
        squares.Add(Bounded(x(t, j)) * Bounded(x(t, j)));
        dot.Add(Bounded(d_y(t, j)) * Bounded(weight[j]) * Bounded(x(t, j)));
      }
      const Bounded scale =
          Bounded(1) /
          property_tests::Sqrt(squares.Get() / width + Bounded(epsilon));
      rstd.push_back(scale);
      const Bounded projection = dot.Get() * scale * scale / width;
      for (int64_t j = 0; j < d; ++j) {
        const Bounded value(x(t, j)), g(d_y(t, j));
        y.push_back(value * scale * Bounded(weight[j]));
        d_weight[j].Add(g * value * scale);
        d_x.push_back(Bounded(before(t, j)) +
                      scale * (g * Bounded(weight[j]) - value * projection));
      }
    }
  }
};

class RmsNorm : public Operation {
 public:
  std::string name() const override { return "rmsnorm"; }
  std::string text() const override {
    return "y = x * weight / sqrt(mean(x^2) + epsilon)";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
        {.name = "rows", .text = "tokens", .high = 140},
        {.name = "d_model", .text = "width", .high = 300},
        {.name = "scale",
         .kind = Kind::kReal,
         .text = "standard deviation of x",
         .low = 1e-6,
         .high = 1e4,
         .typical = {1e-6, 1e-2, 1, 1e4},
         .simple = 1},
        {.name = "epsilon",
         .kind = Kind::kReal,
         .text = "added to the mean square",
         .low = 1e-8,
         .high = 1,
         .typical = {1e-5, 1e-5, 1e-6, 0.5},
         .simple = 0.5},
    };
    return parameters;
  }
  std::vector<std::string> fills() const override {
    return {"generic", "exact", "subnormal", "huge"};
  }
  std::vector<OutputSpec> outputs() const override {
    return {{"y"}, {"d_x"}, {"d_weight"}, {"rstd", /*optional=*/true}};
  }
  std::vector<std::string> differentiable() const override {
    return {"x", "weight"};
  }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = {
        {kDerivation,
         "Mean square, root, quotient and products operation by operation, "
         "every\n"
         "rounding u |x|; the sums over the width and, for d_weight, over the\n"
         "rows n u sum |x|, in any order. The projection of the gradient on x\n"
         "may cancel: its terms count with their magnitudes."}};
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("rows"),
                                      filler.Axis("d_model")};
    return {{"x", filler.Data("x", axes, c.Real("scale"))},
            {"weight", filler.Plain("weight", {axes[1]})},
            {"d_y", filler.Plain("d_y", axes)},
            {"d_x_before", filler.Plain("d_x_before", axes)},
            {"epsilon", filler.Scalar(c.Real("epsilon"))}};
  }

  Expected Expect(const Case& c, const TensorMap& inputs,
                  const TensorMap& got) const override {
    (void)c, (void)got;
    const Matrix x = ToMatrix(At(inputs, "x"));
    const Matrix d_y = ToMatrix(At(inputs, "d_y"));
    const Matrix before = ToMatrix(At(inputs, "d_x_before"));
    const Vector weight = ToVector(At(inputs, "weight"));
    const double epsilon = ScalarOf(inputs, "epsilon");
    const reference::RmsNormGradients gradients =
        reference::RmsNormBackward(x, weight, epsilon, d_y);
    const RmsNormBounds bounds(x, weight, epsilon, d_y, before);
    const std::vector<int64_t> shape = {x.rows(), x.cols()};
    Expected expected;
    auto& outputs = expected.outputs;
    outputs["y"] = FromBounds(
        "y", ToTensor(reference::RmsNormForward(x, weight, epsilon), shape),
        bounds.y, kDerivation);
    outputs["rstd"] =
        FromBounds("rstd", ToTensor(reference::ReciprocalRms(x, epsilon)),
                   bounds.rstd, kDerivation);
    const Matrix d_x = before + gradients.d_hidden;
    outputs["d_x"] =
        FromBounds("d_x", ToTensor(d_x, shape), bounds.d_x, kDerivation);
    outputs["d_weight"] = FromBounds("d_weight", ToTensor(gradients.d_weight),
                                     Values(bounds.d_weight), kDerivation);
    return expected;
  }
};

}  // namespace

const Operation& RmsNormOperation() {
  static const RmsNorm operation;
  return operation;
}

}  // namespace softmoe::verify
