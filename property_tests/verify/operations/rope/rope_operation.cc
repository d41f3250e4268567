// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/scale_parameter.h"
#include "reference/rope.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kDerivation[] = "rope-f32/1";

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

// Queries and keys turned by their position (SPEC.md 3.2).
// inputs   qkv, d_rotated [sequences*length, 3*heads*head_dim]; base []
// outputs  rotated, d_qkv
class Rope : public Operation {
 public:
  std::string name() const override { return "rope"; }
  std::string text() const override {
    return "the pairs of q and k turned by position base^(-2i/head_dim), and "
           "gradients turned back";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
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
    return parameters;
  }
  std::vector<std::string> edges() const override {
    return {"length=0", "head_dim=64", "head_dim=200"};
  }
  std::vector<std::string> fills() const override {
    return {"generic", "subnormal", "huge"};
  }
  std::vector<Dtype> dtypes() const override {
    return {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
  }
  std::vector<OutputSpec> outputs() const override {
    return {{"rotated"}, {"d_qkv"}};
  }
  std::vector<std::string> differentiable() const override { return {"qkv"}; }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = WithStoredBf16({
        {kDerivation,
         "Sine and cosine of the angle are rounded to float, u each, their "
         "two\n"
         "products and the difference or sum, u |x| each, fused or not. v is\n"
         "not touched: equality."},
    });
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    // Addressed by (sequence, token, part and head, column), and stored flat.
    const std::vector<Window> axes = {
        filler.Axis("sequences"), filler.Axis("length"),
        Filler::All(3 * c.Size("heads")), filler.Axis("head_dim")};
    TensorMap inputs = {{"qkv", filler.Data("qkv", axes, c.Real("scale"))},
                        {"d_rotated", filler.Plain("d_rotated", axes)},
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

  Expected Expect(const Case& c, const TensorMap& inputs,
                  const TensorMap& got) const override {
    (void)got;
    const Rotation rotation = RotationOf(c, inputs);
    const Matrix qkv = ToMatrix(At(inputs, "qkv"));
    const Matrix d_rotated = ToMatrix(At(inputs, "d_rotated"));
    const std::vector<int64_t> shape = {qkv.rows(), qkv.cols()};
    return StoredAsBf16(
        *this, c,
        ExpectInFloat<RopeFormula>(
            c,
            {{"rotated",
              ToTensor(reference::RopeForward(qkv, rotation.sequences,
                                              rotation.heads, rotation.base),
                       shape)},
             {"d_qkv",
              ToTensor(reference::RopeBackward(d_rotated, rotation.sequences,
                                               rotation.heads, rotation.base),
                       shape)}},
            kDerivation, /*exact=*/false, rotation, qkv, d_rotated));
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
