// SPDX-License-Identifier: Apache-2.0
//
// formula.h - what an operation expects where one of the reference's own
// formulas (namespace reference::formula) covers it: run over numbers that
// carry their error, the formula gives bounds; run over naive bf16 numbers,
// what the rule for bf16 compares with.
//
//   template <typename N>  // Bounded, RandomBounded, Naive, Stored...
//   struct Formula {
//     std::map<std::string, std::vector<N>> outputs;  // flat
//     explicit Formula(arguments...);
//   };
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_

#include <map>
#include <string>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/stored.h"

namespace softmoe::verify {

// Converts to numbers of another kind: exact values, or the same numbers with
// worst-case sums.
template <typename N, typename M>
reference::MatrixOf<N> As(const reference::MatrixOf<M>& matrix) {
  return matrix.unaryExpr([](const M& x) { return N(x); });
}
template <typename N, typename M>
reference::VectorOf<N> As(const reference::VectorOf<M>& vector) {
  return vector.unaryExpr([](const M& x) { return N(x); });
}
// The elements of a matrix, row by row.
template <typename N>
std::vector<N> Flat(const reference::MatrixOf<N>& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

// The kind of number that replaces N where the terms of a sum are not random.
template <typename N>
struct WorstCaseOf {
  using Type = N;
};
template <>
struct WorstCaseOf<RandomBounded> {
  using Type = Bounded;
};

template <template <typename> class Formula, typename N, typename... Arguments>
Expected ExpectBounds(const std::map<std::string, Tensor>& values,
                      const std::string& derivation,
                      const Arguments&... arguments) {
  const Formula<N> bounds(arguments...);
  Expected expected;
  for (const auto& [name, tensor] : values) {
    const auto& output = bounds.outputs.at(name);
    expected.outputs[name] =
        FromBounds(name, tensor, {output.begin(), output.end()}, derivation);
  }
  return expected;
}

// The reference's `values` with float's bounds from the formula, by
// `derivation`; equality for fill exact if `exact` says that its data is exact.
template <template <typename> class Formula, typename... Arguments>
Expected ExpectInFloat(const Case& c,
                       const std::map<std::string, Tensor>& values,
                       const std::string& derivation, bool exact,
                       const Arguments&... arguments) {
  if (exact && c.fill.name == "exact") {
    Expected expected;
    for (const auto& [name, tensor] : values) {
      expected.outputs[name] = ExactRegime(tensor);
    }
    return expected;
  }
  return RoundingsOf(c) == Roundings::kRandom
             ? ExpectBounds<Formula, RandomBounded>(values, derivation,
                                                    arguments...)
             : ExpectBounds<Formula, Bounded>(values, derivation, arguments...);
}

// Does the same at f32. At bf16 it follows the rule (FromNaive): twice the
// error of the naive program, or that of one that computes in float and stores
// as Stored does.
template <template <typename> class Formula, typename Stored,
          typename... Arguments>
Expected ExpectByFormula(const Case& c,
                         const std::map<std::string, Tensor>& values,
                         const std::string& derivation, bool exact,
                         const Arguments&... arguments) {
  if (c.dtype != Dtype::kBf16) {
    return ExpectInFloat<Formula>(c, values, derivation, exact, arguments...);
  }
  Expected expected =
      ExpectBounds<Formula, Bounded>(values, derivation, arguments...);
  const Formula<Naive> naive(arguments...);
  const Formula<Stored> stored(arguments...);
  for (auto& [name, output] : expected.outputs) {
    // Adds what the formula over Bounded allows for other ways to compute it.
    std::vector<double> errors = output.bounds;
    for (size_t i = 0; i < errors.size(); ++i) {
      errors[i] += stored.outputs.at(name)[i].error;
    }
    output = FromNaive(output.values, naive.outputs.at(name), errors);
  }
  return expected;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_
