// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "reference/rope.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

// The additional data for rotating all queries and keys.
struct Rotation {
  int64_t sequences, heads;
  double base;
};

template <typename N>
struct RopeFormula {
  std::map<std::string, std::vector<N>> outputs;

  RopeFormula(const Rotation& rotation, const Matrix& qkv,
              const Matrix& d_rotated) {
    outputs["rotated"] = Rotated(rotation, qkv, 1);
    outputs["d_qkv"] = Rotated(rotation, d_rotated, -1);
  }

 private:
  // Sine and cosine are rounded to float, which acts like a rounding of q and
  // k.
  static std::vector<N> Rotated(const Rotation& rotation, const Matrix& qkv,
                                int direction) {
    reference::MatrixOf<N> inexact = As<N>(qkv);
    for (int64_t t = 0; t < qkv.rows(); ++t) {
      for (int64_t j = 0; j < 2 * qkv.cols() / 3; ++j) {
        inexact(t, j) = inexact(t, j).Rounded();
      }
    }
    return Flat<N>(reference::formula::RotateQueriesAndKeys<N>(
        inexact, rotation.sequences, rotation.heads, rotation.base, direction));
  }
};

// Returns the roundings (in u) of a pair's angle in double, position times p =
// base^(-2i/head_dim), in any implementation: (4 |ln p|) u for quotient,
// logarithm (2 u) and product of the exponent; 4 u for the power, which is
// within 1 ulp (2 u) and may be that of the reciprocal, and for the product.
// Pair 0 turns by whole numbers.
double AngleRoundings(int64_t pair, int64_t head_dim, double base) {
  if (pair == 0) return 0;
  const double exponent =
      2 * static_cast<double>(pair) / static_cast<double>(head_dim);
  return 4 + 4 * exponent * std::log(base);
}

// At f64, sine and cosine are no more accurate than the rest: adds what the
// angle's error does to them, and that they are within 1 ulp. In the units of
// float's bounds, of which 2^-28 then remain, for both sides (AtF64Derivation).
void AddAngleErrors(const Rotation& rotation, const Matrix& x,
                    ExpectedOutput* rotated) {
  const int64_t turned = 2 * x.cols() / 3,
                length = x.rows() / rotation.sequences;
  const int64_t dim = x.cols() / 3 / rotation.heads, half = dim / 2;
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t j = 0; j < turned; ++j) {
      const int64_t pair = j % half;
      const int64_t partner = j % dim < half ? j + half : j - half;
      const double angle =
          reference::RopeAngle(t % length, pair, dim, rotation.base);
      const double roundings =
          AngleRoundings(pair, dim, rotation.base) * angle + 1;
      rotated->bounds[t * x.cols() + j] +=
          roundings * kFloatUnit *
          (std::abs(x(t, j)) + std::abs(x(t, partner)));
    }
  }
}

// Queries and keys turned by their position (SPEC.md 3.2).
// inputs   qkv, d_rotated [sequences*length, 3*heads*head_dim]; base []
// outputs  rotated, d_qkv
class Rope : public Operation {
 public:
  Rope() {
    name_ = "rope";
    text_ =
        "the pairs (i, i + head_dim/2) of q and k turned by position "
        "base^(-2i/head_dim), an angle in double at every dtype, and gradients "
        "turned back; qkv has all heads of q, then of k, then of v";
    parameters_ = {
        {.name = "sequences",
         .text = "sequences",
         .high = 3,
         .apart = Parameter::Apart::kAlways},
        {.name = "length", .text = "tokens per sequence", .high = 50},
        {.name = "heads", .text = "heads", .high = 3},
        {.name = "head_dim",
         .text = "width of a head",
         .low = 2,
         .high = 40,
         .step = 2},
        {.name = "base",
         .kind = Kind::kReal,
         .text = "of the angles: rope_base",
         .low = 1,
         .high = 1e6,
         .typical = {100, 10000, 10000, 500000},
         .simple = 10000},
        ScaleParameter("q, k and v"),
    };
    edges_ = {"length=0", "head_dim=64", "head_dim=200",
              // Positions of the models that are trained.
              "length=2048 sequences=1 heads=1 head_dim=4"};
    fills_ = {"generic", "subnormal", "huge"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{"rotated"}, {"d_qkv"}};
    differentiable_ = {"qkv"};
    derivations_ = WithStoredBf16({
        {kDerivation, RawLines(R"(
The angle a is computed in double. Its sine and cosine are rounded to
float, u each, their two products and the difference or sum, u |x| each,
fused or not. v is not touched: equality. At f64 the angle errs, too, by
(4 + 4 |ln p|) u a for the power p = base^(-2i/head_dim), i > 0 (quotient,
logarithm and product of the exponent; power, reciprocal, product), and
sine and cosine are within 1 ulp, u more: so often |x_i| + |x_(i+h/2)|.)")},
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    // Addressed by (sequence, token, part and head, column), and stored flat.
    const std::vector<Window> axes = {
        filler.Axis("sequences"), filler.Axis("length"),
        Filler::All(3 * c.Size("heads")), filler.Axis("head_dim")};
    TensorMap inputs = {{"qkv", filler.Data("qkv", axes, c.Real("scale"))},
                        {"d_rotated", filler.Cotangent("d_rotated", axes)},
                        {"base", filler.InFloat().Scalar(c.Real("base"))}};
    for (const char* name : {"qkv", "d_rotated"}) {
      inputs[name].shape = {c.Size("sequences") * c.Size("length"),
                            3 * c.Size("heads") * c.Size("head_dim")};
    }
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    (void)c;
    return ScalarOf(inputs, "base") >= 1 ? "" : "base must stay at least 1";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Rotation rotation = RotationOf(c, inputs);
    const Matrix qkv = ToMatrix(At(inputs, "qkv"));
    const Matrix d_rotated = ToMatrix(At(inputs, "d_rotated"));
    const std::vector<int64_t> shape = {qkv.rows(), qkv.cols()};
    Expected expected = ExpectInFloat<RopeFormula>(
        c,
        {{"rotated",
          ToTensor(reference::RopeForward(qkv, rotation.sequences,
                                          rotation.heads, rotation.base),
                   shape)},
         {"d_qkv",
          ToTensor(reference::RopeBackward(d_rotated, rotation.sequences,
                                           rotation.heads, rotation.base),
                   shape)}},
        kDerivation, /*exact=*/false, rotation, qkv, d_rotated);
    for (auto& [name, output] : expected.outputs) {
      for (int64_t i = 0; i < output.values.size(); ++i) {
        if (i % qkv.cols() >= 2 * qkv.cols() / 3) output.bounds[i] = 0;  // v
      }
    }
    expected = StoredAsBf16(*this, c, std::move(expected));
    if (c.dtype == Dtype::kF64) {
      AddAngleErrors(rotation, qkv, &expected.outputs.at("rotated"));
      AddAngleErrors(rotation, d_rotated, &expected.outputs.at("d_qkv"));
    }
    return expected;
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const Rotation rotation = RotationOf(c, inputs);
    const Tensor& qkv = At(inputs, "qkv");
    return {{"rotated",
             ToTensor(reference::RopeForward(ToMatrix(qkv), rotation.sequences,
                                             rotation.heads, rotation.base),
                      qkv.shape)}};
  }

 private:
  static constexpr char kDerivation[] = "rope-f32/3";

  static Rotation RotationOf(const Case& c, const TensorMap& inputs) {
    return {c.Size("sequences"), c.Size("heads"), ScalarOf(inputs, "base")};
  }
};

}  // namespace

const Operation& RopeOperation() {
  static const Rope operation;
  return operation;
}

}  // namespace softmoe::verify
