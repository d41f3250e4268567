// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/scale_parameter.h"

namespace softmoe::verify {
namespace {

// Casts from float to bf16 and back, at dtype bf16 only.
// inputs   x [size], in float; stored [size]
// outputs  rounded [size]; widened [size], in float
class Cast : public Operation {
 public:
  std::string name() const override { return "cast"; }
  std::string text() const override {
    return "x rounded to bf16, ties to even; bf16 numbers as floats";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
        {.name = "size",
         .text = "elements",
         .high = 1500,
         .apart = Parameter::Apart::kAlways},
        ScaleParameter("x"),
    };
    return parameters;
  }
  std::vector<std::string> edges() const override {
    return {"size=0", "size=40001"};
  }
  std::vector<std::string> fills() const override {
    return {"generic", "subnormal"};
  }
  std::vector<Dtype> dtypes() const override { return {Dtype::kBf16}; }
  std::vector<OutputSpec> outputs() const override {
    return {{"rounded"}, {.name = "widened", .in_float = true}};
  }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = WithStoredBf16({
        {kDerivation,
         "Of the bf16 numbers the nearest, of two the even one; a bf16 number "
         "is\n"
         "the upper half of its float: equality."},
    });
    return derivations;
  }

  // Every second x lies in the middle between two bf16 numbers.
  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("size")};
    Tensor x = filler.InFloat().Data("x", axes, c.Real("scale"));
    for (int64_t i = 0; i < x.size(); i += 2) {
      const double below = RoundTo(Dtype::kBf16, x.values[i]);
      x.values[i] = (below + StepBy(Dtype::kBf16, below, 1)) / 2;
    }
    return {{"x", x}, {"stored", filler.Data("stored", axes, c.Real("scale"))}};
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    Expected expected;
    expected.outputs["rounded"] =
        Exactly(ToTensor(ToVector(At(inputs, "x"))), kDerivation);
    expected.outputs["widened"] =
        Exactly(ToTensor(ToVector(At(inputs, "stored"))), kDerivation);
    return StoredAsBf16(*this, c, expected);
  }

 private:
  static constexpr char kDerivation[] = "cast/1";
};

}  // namespace

const Operation& CastOperation() {
  static const Cast operation;
  return operation;
}

}  // namespace softmoe::verify
