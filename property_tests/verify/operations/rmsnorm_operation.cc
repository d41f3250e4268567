// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/matrix.h"
#include "reference/rmsnorm.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;
using reference::Vector;

// The reference's formulas, with the additional roundings of other programs.
template <typename N>
struct RmsNormFormula {
  std::map<std::string, std::vector<N>> outputs;

  RmsNormFormula(const Matrix& x, const Vector& weight, double epsilon,
                 const Matrix& d_y, const Matrix& before) {
    namespace formula = reference::formula;
    const reference::MatrixOf<N> hidden = As<N>(x);
    const reference::VectorOf<N> scale = As<N>(weight);
    reference::VectorOf<N> rstd = formula::ReciprocalRms<N>(hidden, epsilon);
    // A root and a quotient round twice; an rsqrt within 2 ulp errs by 4 u.
    for (N& each : rstd) each = each.Rounded(2);
    reference::RmsNormGradientsOf<N> gradients =
        formula::RmsNormBackward<N>(hidden, scale, rstd, As<N>(d_y));
    // (d_model v - xhat sum) (1/d_model rstd) rounds three times more.
    for (N& d : gradients.d_hidden.reshaped()) d = d.Rounded(3);
    outputs["y"] = Flat<N>(formula::RmsNormForward<N>(hidden, scale, rstd));
    outputs["rstd"] = Flat<N>(rstd);
    outputs["d_x"] =
        Flat<N>(formula::Plus<N>(As<N>(before), gradients.d_hidden));
    outputs["d_weight"] = Flat<N>(gradients.d_weight);
  }
};

// RMSNorm and its gradients (SPEC.md 3.2).
// inputs   x, d_y, d_x_before [rows, d_model]; weight [d_model]; epsilon []
// outputs  y, d_x [rows, d_model] (d_x_before is added), d_weight [d_model],
//          rstd [rows] (optional)
class RmsNorm : public Operation {
 public:
  RmsNorm() {
    name_ = "rmsnorm";
    text_ = "y = x * weight / sqrt(mean(x^2) + epsilon)";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 140,
         .apart = Parameter::Apart::kAlways},
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
    edges_ = {"rows=0", "d_model=640", "d_model=2056 rows=70", "rows=600",
              // More blocks on a device than a tree of sums has strips.
              "rows=2113 d_model=2 fill=exact"};
    fills_ = {"generic", "exact", "subnormal", "huge", "zero_rows"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{"y"},
                {"d_x"},
                {.name = "d_weight", .in_float = true},
                {.name = "rstd", .optional = true, .in_float = true}};
    differentiable_ = {"x", "weight"};
    derivations_ = WithStoredBf16({
        {kDerivation, RawLines(R"(
Mean square, root, quotient and products operation by operation, every
rounding u |x|; the sums over the width and, for d_weight, over the rows
n u sum |x|, in any order. 2 u more for a reciprocal root in one operation,
within 2 ulp; on exact data, that of 1 must be 1. The projection of the
gradient on x may cancel: its terms count with their magnitudes. For
N = d_model and v = weight d_y it may be (N v - xhat sum) (1/N rstd), where
N d_y, 1/N and a product are rounded besides, and no division of the sum:
3 u of the result more, since |v| <= |v - xhat mean| + |xhat mean|.
)") + kRandomRoundingsText},
        ExactDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Filler in_float = filler.InFloat();
    const std::vector<Window> axes = {filler.Axis("rows"),
                                      filler.Axis("d_model")};
    if (c.fill.name == "exact") {
      // mean(x^2) + epsilon = 1/4 + 3/4.
      return {{"x", filler.OneOf("x", axes, {-0.5, 0.5})},
              {"weight", in_float.Plain("weight", {axes[1]})},
              {"d_y", filler.Plain("d_y", axes)},
              {"d_x_before", filler.Plain("d_x_before", axes)},
              {"epsilon", in_float.Scalar(0.75)}};
    }
    Tensor x = filler.Data("x", axes, c.Real("scale"));
    const int64_t width = axes[1].count;
    for (int64_t i = 0; i < x.size(); ++i) {
      if (filler.IsZeroRow(axes[0].first + i / width)) x.values[i] = 0;
    }
    return {{"x", x},
            {"weight", in_float.Plain("weight", {axes[1]})},
            {"d_y", filler.Cotangent("d_y", axes)},
            {"d_x_before", filler.Cotangent("d_x_before", axes)},
            {"epsilon", in_float.Scalar(c.Real("epsilon"))}};
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    (void)c;
    return ScalarOf(inputs, "epsilon") > 0 ? "" : "epsilon must stay above 0";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix x = ToMatrix(At(inputs, "x"));
    const Matrix d_y = ToMatrix(At(inputs, "d_y"));
    const Matrix before = ToMatrix(At(inputs, "d_x_before"));
    const Vector weight = ToVector(At(inputs, "weight"));
    const double epsilon = ScalarOf(inputs, "epsilon");
    const reference::RmsNormGradients gradients =
        reference::RmsNormBackward(x, weight, epsilon, d_y);
    const std::vector<int64_t> shape = {x.rows(), x.cols()};
    const Matrix d_x = before + gradients.d_hidden;
    const std::map<std::string, Tensor> values = {
        {"y", ToTensor(reference::RmsNormForward(x, weight, epsilon), shape)},
        {"rstd", ToTensor(reference::ReciprocalRms(x, epsilon))},
        {"d_x", ToTensor(d_x, shape)},
        {"d_weight", ToTensor(gradients.d_weight)}};
    // Division by the width is exact, however it is done, if the width is 2^m.
    const bool exact = std::has_single_bit(static_cast<uint64_t>(x.cols()));
    return StoredAsBf16(
        *this, c,
        ExpectInFloat<RmsNormFormula>(c, values, kDerivation, exact, x, weight,
                                      epsilon, d_y, before));
  }

  // d_x is accumulated: the gradient of <d_y, y> + <d_x_before, x>.
  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)c, (void)choice;
    const Tensor& x = At(inputs, "x");
    return {{"y", ToTensor(reference::RmsNormForward(
                               ToMatrix(x), ToVector(At(inputs, "weight")),
                               ScalarOf(inputs, "epsilon")),
                           x.shape)},
            {"carried_on", x}};
  }
  TensorMap Cotangents(const TensorMap& inputs,
                       const TensorMap& outputs) const override {
    (void)outputs;
    return {{"y", At(inputs, "d_y")}, {"carried_on", At(inputs, "d_x_before")}};
  }

 private:
  static constexpr char kDerivation[] = "rmsnorm-f32/5";
};

}  // namespace

const Operation& RmsNormOperation() {
  static const RmsNorm operation;
  return operation;
}

}  // namespace softmoe::verify
