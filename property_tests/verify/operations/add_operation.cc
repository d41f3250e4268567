// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"

namespace softmoe::verify {
namespace {

using reference::Vector;

template <typename N>
struct AddFormula {
  std::map<std::string, std::vector<N>> outputs;

  AddFormula(const Vector& x, const Vector& before) {
    std::vector<N>& y = outputs["y"];
    for (int64_t i = 0; i < x.size(); ++i) y.push_back(N(before[i]) + N(x[i]));
  }
};

// y += x for arrays: adds up gradients.
// inputs   x [size], in float; y_before [size]
// outputs  y [size]
class Add : public Operation {
 public:
  Add() {
    name_ = "add";
    text_ = "y += x";
    parameters_ = {
        {.name = "size",
         .text = "elements",
         .high = 1500,
         .apart = Parameter::Apart::kAlways},
        ScaleParameter("x"),
    };
    edges_ = {"size=0", "size=70001"};
    fills_ = {"generic", "exact", "subnormal", "huge"};
    dtypes_ = {Dtype::kF32, Dtype::kBf16};
    outputs_ = {{"y"}};
    derivations_ = WithStoredBf16({
        {kDerivation, "One addition: u |y|."},
        ExactDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("size")};
    return {{"x", filler.InFloat().Data("x", axes, c.Real("scale"))},
            {"y_before", filler.Plain("y_before", axes)}};
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Vector x = ToVector(At(inputs, "x"));
    const Vector before = ToVector(At(inputs, "y_before"));
    return StoredAsBf16(
        *this, c,
        ExpectInFloat<AddFormula>(c, {{"y", ToTensor(Vector(before + x))}},
                                  kDerivation, /*exact=*/true, x, before));
  }

 private:
  static constexpr char kDerivation[] = "add-f32/1";
};

}  // namespace

const Operation& AddOperation() {
  static const Add operation;
  return operation;
}

}  // namespace softmoe::verify
