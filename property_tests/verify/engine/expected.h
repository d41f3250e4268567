// SPDX-License-Identifier: Apache-2.0
//
// expected.h - converts tensors to the reference's matrices, and numbers that
// carry their errors to an expected output.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_EXPECTED_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_EXPECTED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/error_bounds.h"
#include "property_tests/verify/engine/naive.h"
#include "property_tests/verify/engine/operation.h"
#include "reference/matrix.h"

namespace softmoe::verify {

using property_tests::Bounded;
using property_tests::RandomBounded;
using FloatSum = BoundedSum<Bounded>;

const Tensor& At(const TensorMap& tensors, const std::string& name);
double ScalarOf(const TensorMap& tensors, const std::string& name);
// f64, of shape [].
Tensor ScalarTensor(double value);

// "ids[3] is 9; it must be between 0 and 7" for the first i32 element outside
// [0, limit).
std::string WhyNoIds(const TensorMap& inputs, const std::string& name,
                     int64_t limit);
// Why LapSum cannot take this mean_active (between 0 and num_experts) or
// temperature (above 0); "" if it can.
std::string WhyNotSoft(const TensorMap& inputs, int64_t num_experts);

// The tensor as a matrix of its leading dimension; rank 1 is one row.
reference::Matrix ToMatrix(const Tensor& tensor);
reference::Vector ToVector(const Tensor& tensor);  // all elements
Tensor ToTensor(const reference::Matrix& matrix, std::vector<int64_t> shape);
Tensor ToTensor(const reference::Vector& vector);

// kRandom for generic data that is not simplified; in directed and simplified
// data all roundings may go the same way.
Roundings RoundingsOf(const Case& c);
// The text that derivations quote if they use RoundingsOf.
extern const char kRandomRoundingsText[];

// An output with the reference's `values` and the errors of `bounds`, in flat
// order. Throws InternalError, naming output and element, if the bounds were
// derived for another formula, that is, if their own values differ from the
// reference's by more than a small part of the error. Where the data is so
// ill-conditioned that the error has no limit, the bound is infinite, and the
// comparison INCONCLUSIVE.
ExpectedOutput FromBounds(const std::string& output, const Tensor& values,
                          const std::vector<Bounded>& bounds,
                          const std::string& derivation);

// Converts float's bounds to those of outputs stored as bf16, if the case's
// dtype is bf16: the arithmetic is in float and the result is rounded once.
// WithStoredBf16 adds the derivations with the resulting ids.
Expected StoredAsBf16(const Operation& op, const Case& c, Expected in_float);
// `derivations`, plus the bf16 forms of the first one and of exact/2.
std::vector<Derivation> WithStoredBf16(std::vector<Derivation> derivations);

// Converts ExactRegime to outputs stored as bf16, for data that is exact
// whatever is stored: rounded once; others may also round what is in float.
Expected ExactAsBf16(const Operation& op, const Case& c, Expected exact);

// The rule for outputs of programs that store bf16 at unknown places on the
// way: within twice the largest error of the naive computation (naive.h) plus
// one rounding of the output, or within the bounds of `plain`, a program that
// stores what plain ones do (stored.h); where those are infinite, of `ours`. If
// `plain` has no bound and the naive computation happens to have no error,
// there is no bound. Infinite bounds of `ours` become those of the naive
// computation.
ExpectedOutput FromNaive(const OutputSpec& spec,
                         const std::vector<Naive>& naive,
                         const ExpectedOutput& plain, ExpectedOutput& ours);

// FromBounds for an output computed in double, like the reference: each side
// errs by 2^-29 of `bounds`, which are for float.
ExpectedOutput FromDoubleBounds(const std::string& output, const Tensor& values,
                                const std::vector<Bounded>& bounds,
                                const std::string& derivation);

// An output of FromDoubleBounds after one rounding to float.
ExpectedOutput RoundedToFloat(ExpectedOutput in_double);

// An output that must be equal bit for bit, except for the sign of a zero.
ExpectedOutput Exactly(Tensor values, const std::string& derivation);

// An output of fill `exact`, whose data makes every sum of terms exact in
// float, in any order. Throws InternalError for a value that float does not
// have.
ExpectedOutput ExactRegime(Tensor values);

// Derivations that operations share: exact/2, twice-naive-bf16/5,
// stored-operands/2.
const Derivation& ExactDerivation();
const Derivation& NaiveDerivation();
const Derivation& StoredDerivation();
// `derivations`, plus those of ExpectStored and of exact data at bf16.
std::vector<Derivation> WithStoredOperands(std::vector<Derivation> derivations);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_EXPECTED_H_
