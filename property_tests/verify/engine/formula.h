// SPDX-License-Identifier: Apache-2.0
//
// formula.h - expectations for operations covered by one of the reference's own
// formulas (namespace reference::formula): run over numbers that carry their
// error, the formula gives bounds; run over naive bf16 numbers, it gives the
// results that the rule for other people's bf16 compares with.
//
//   template <typename N>  // Bounded, RandomBounded, Naive, Stored...
//   struct Formula {
//     std::map<std::string, std::vector<N>> outputs;  // flat
//     explicit Formula(arguments...);
//   };
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_

#include <cmath>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

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
// `derivation`. Equality for fill exact, if `exact` says that its data is.
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

// Adds the formula's errors over Stored to `expected`, which has its bounds
// over Bounded. At bf16 this bounds a program that computes in float and stores
// as Stored does (StoredDerivation); each operation of float counts twice.
template <template <typename> class Formula, typename Stored,
          typename... Arguments>
Expected AddStored(const Operation& op, const Case& c, Expected expected,
                   const Arguments&... arguments) {
  const Formula<Stored> stored(arguments...);
  for (auto& [name, output] : expected.outputs) {
    for (size_t i = 0; i < output.bounds.size(); ++i) {
      double& bound = output.bounds[i];
      bound += stored.outputs.at(name)[i].error;
      if (!(bound < HUGE_VAL)) bound = HUGE_VAL;  // or NaN
    }
  }
  return StoredAsBf16(op, c, std::move(expected));
}
template <template <typename> class Formula, typename Stored,
          typename... Arguments>
Expected ExpectStored(const Operation& op, const Case& c,
                      const std::map<std::string, Tensor>& values,
                      const Arguments&... arguments) {
  return AddStored<Formula, Stored>(
      op, c,
      ExpectBounds<Formula, Bounded>(values, StoredDerivation().id,
                                     arguments...),
      arguments...);
}

// For whom the data of fill exact is exact at bf16: for what our kernels store
// on the way, or for whatever is stored. In float there is no difference.
enum class Exact { kForNobody, kForOurs, kForAll };

// ExpectInFloat; at bf16, the rule for everybody (FromNaive) and, for our own
// kernels, AddStored, or exact data rounded once.
template <template <typename> class Formula, typename Stored,
          typename... Arguments>
Expected ExpectByFormula(const Operation& op, const Case& c,
                         const std::map<std::string, Tensor>& values,
                         const std::string& derivation, Exact exact,
                         const Arguments&... arguments) {
  const bool is_exact = c.fill.name == "exact" && exact != Exact::kForNobody;
  const auto in_float = [&] {
    return ExpectInFloat<Formula>(c, values, derivation, is_exact,
                                  arguments...);
  };
  if (c.dtype != Dtype::kBf16) return in_float();
  if (is_exact && exact == Exact::kForAll) {
    return ExactAsBf16(op, c, in_float());
  }
  const Expected bounded = ExpectBounds<Formula, Bounded>(
      values, StoredDerivation().id, arguments...);
  Expected expected;
  expected.of_ours =
      AddStored<Formula, Stored>(op, c, bounded, arguments...).outputs;
  const auto plain =
      std::is_same_v<Stored, StoredResults>
          ? expected.of_ours
          : AddStored<Formula, StoredResults>(op, c, bounded, arguments...)
                .outputs;
  const Formula<Naive> naive(arguments...);
  for (const OutputSpec& spec : op.outputs()) {
    expected.outputs[spec.name] =
        FromNaive(spec, naive.outputs.at(spec.name), plain.at(spec.name),
                  expected.of_ours.at(spec.name));
  }
  if (is_exact) expected.of_ours = StoredAsBf16(op, c, in_float()).outputs;
  return expected;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FORMULA_H_
