// SPDX-License-Identifier: Apache-2.0
//
// formula.h - an operation's formula, written once over the kind of number: run
// over numbers that carry their error it gives bounds, over naive bf16 numbers
// what the rule for bf16 compares with.
//
//   template <typename N>
//   struct Formula {
//     std::map<std::string, std::vector<N>> outputs;  // flat
//     Formula(arguments..., kernels::Roundings roundings);
//   };
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FORMULA_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FORMULA_H_

#include <map>
#include <string>

#include "property_tests/verify/expected.h"

namespace softmoe::verify {

// The reference's `values` with bounds from the formula: `derivation` at f32,
// twice the naive error at bf16; equality where `exact` says that the data of
// fill exact is.
template <template <typename> class Formula, typename... Arguments>
Expected ExpectByFormula(const Case& c,
                         const std::map<std::string, Tensor>& values,
                         const std::string& derivation, bool exact,
                         const Arguments&... arguments) {
  Expected expected;
  if (c.dtype == Dtype::kBf16) {
    const Formula<Naive> naive(arguments..., kernels::Roundings::kWorstCase);
    for (const auto& [name, tensor] : values) {
      expected.outputs[name] = FromNaive(tensor, naive.outputs.at(name));
    }
  } else if (exact && c.fill.name == "exact") {
    for (const auto& [name, tensor] : values) {
      expected.outputs[name] = ExactRegime(tensor);
    }
  } else {
    const Formula<Bounded> bounds(arguments..., RoundingsOf(c));
    for (const auto& [name, tensor] : values) {
      expected.outputs[name] =
          FromBounds(name, tensor, bounds.outputs.at(name), derivation);
    }
  }
  return expected;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FORMULA_H_
