// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;

constexpr char kSquares[] = "sum-of-squares-f64/2";

// The sum of squares that gradient clipping uses (SPEC.md 4).
// inputs   x [size]
// outputs  sum_of_squares [], in double
class SumOfSquares : public Operation {
 public:
  SumOfSquares() {
    name_ = "sum_of_squares";
    text_ = "sum of x^2, in double: the norm that clipping looks at";
    parameters_ = {
        {.name = "size", .text = "elements", .high = 20000},
        {.name = "scale",
         .kind = Kind::kReal,
         .text = "standard deviation of x",
         .low = 1e-30,
         .high = 1e30,
         .typical = {1e-30, 1e-3, 1, 1e30},
         .simple = 1},
    };
    // Exact data shows no rounding: only generic data shows a total in float.
    edges_ = {"size=0", "size=1052667 fill=exact", "size=40001 fill=generic"};
    fills_ = {"generic", "exact", "subnormal", "huge"};
    outputs_ = {{.name = "sum_of_squares", .in_double = true}};
    derivations_ = {{kSquares, RawLines(R"(
A product of floats is exact in double; n additions of positive terms
in any order: n u sum x^2, u = 2^-53, for both sides. Float would
overflow or vanish at scales of 1e30 and 1e-30.)")}};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    return {{"x", filler.Data("x", {filler.Axis("size")}, c.Real("scale"))}};
  }
  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    (void)c;
    const Tensor& x = At(inputs, "x");
    const reference::Vector terms = ToVector(x);
    const Tensor sum = ScalarTensor(terms.squaredNorm());
    FloatSum bound;
    for (const double term : x.values) bound.Add(Bounded(term * term));
    Expected expected;
    expected.outputs["sum_of_squares"] =
        c.fill.name == "exact"
            ? Exactly(sum, kSquares)
            : FromDoubleBounds("sum_of_squares", sum, {bound.Get()}, kSquares);
    return expected;
  }
};

}  // namespace

const Operation& SumOfSquaresOperation() {
  static const SumOfSquares operation;
  return operation;
}

}  // namespace softmoe::verify
