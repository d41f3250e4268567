// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"

namespace softmoe::verify {
namespace {

// Casts from float to bf16 and back, at dtype bf16 only.
// inputs   x [size], in float; stored [size]
// outputs  rounded [size]; widened [size], in float
class Cast : public Operation {
 public:
  Cast() {
    name_ = "cast";
    text_ = "x rounded to bf16, ties to even; bf16 numbers as floats";
    parameters_ = {
        {.name = "size",
         .text = "elements",
         .high = 1500,
         .apart = Parameter::Apart::kAlways},
        ScaleParameter("x"),
    };
    edges_ = {"size=0", "size=40001"};
    fills_ = {"generic", "subnormal", "largest"};
    dtypes_ = {Dtype::kBf16};
    outputs_ = {{"rounded"}, {.name = "widened", .in_float = true}};
    derivations_ = WithStoredBf16({
        {kDerivation, RawLines(R"(
Of the bf16 numbers the nearest, of two the even one; a bf16 number is
the upper half of its float: equality. Numbers that round to infinity,
and NaN, are not drawn.)")},
    });
  }

  // Every second x lies midway between two bf16 numbers; in fill "largest",
  // every x is one of LargestNumbers.
  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("size")};
    Tensor x = filler.InFloat().Data("x", axes, c.Real("scale"));
    for (int64_t i = 0; i < x.size(); i += 2) {
      const double below = RoundTo(Dtype::kBf16, x.values[i]);
      x.values[i] = (below + StepBy(Dtype::kBf16, below, 1)) / 2;
    }
    if (c.fill.name == "largest") {
      x = filler.InFloat().OneOf("x", axes, LargestNumbers());
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
  // The last midpoint and its neighbours, the largest bf16 number, and the last
  // float that rounds to it; each with both signs.
  static std::vector<double> LargestNumbers() {
    const double largest = 0x1.fep127, middle = 0x1.fdp127;
    std::vector<double> numbers;
    for (const double x : {StepBy(Dtype::kF32, middle, -1), middle,
                           StepBy(Dtype::kF32, middle, 1), largest,
                           StepBy(Dtype::kF32, largest, 0x7fff)}) {
      numbers.insert(numbers.end(), {x, -x});
    }
    return numbers;
  }

  static constexpr char kDerivation[] = "cast/1";
};

}  // namespace

const Operation& CastOperation() {
  static const Cast operation;
  return operation;
}

}  // namespace softmoe::verify
