// SPDX-License-Identifier: Apache-2.0
//
// expected.h - between tensors and the reference's matrices, and from numbers
// with errors to an expected output.
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

// "ids[3] is 9; it is 0 to 7" for the first i32 element outside [0, limit).
std::string WhyNoIds(const TensorMap& inputs, const std::string& name,
                     int64_t limit);
// Why mean_active (between 0 and num_experts) and temperature (above 0) are not
// LapSum's.
std::string WhyNotSoft(const TensorMap& inputs, int64_t num_experts);

// The tensor as a matrix of its leading dimension; rank 1 is one row.
reference::Matrix ToMatrix(const Tensor& tensor);
reference::Vector ToVector(const Tensor& tensor);  // all elements
Tensor ToTensor(const reference::Matrix& matrix, std::vector<int64_t> shape);
Tensor ToTensor(const reference::Vector& vector);

// kRandom for generic data as it was drawn; directed and simplified data may
// be such that all roundings agree.
Roundings RoundingsOf(const Case& c);
// The text of the above, for a derivation that uses it.
extern const char kRandomRoundingsText[];

// An output with the reference's `values` and the bounds' errors, in flat
// order. Throws InternalError, naming output and element, if the bounds were
// derived for another formula: their own value is the reference's to within a
// small part of the error. Where the data is so ill-conditioned that the error
// has no limit, the bound is infinite, and the comparison INCONCLUSIVE.
ExpectedOutput FromBounds(const std::string& output, const Tensor& values,
                          const std::vector<Bounded>& bounds,
                          const std::string& derivation);

// The rule for bf16 (naive.h): within twice the largest error of the naive
// computation, and one rounding of the output.
ExpectedOutput FromNaive(const Tensor& values, const std::vector<Naive>& naive);

// The same for an output that is computed in double, as the reference is: both
// sides err by 2^-29 of what the bounds, which are for float, say.
ExpectedOutput FromDoubleBounds(const std::string& output, const Tensor& values,
                                const std::vector<Bounded>& bounds,
                                const std::string& derivation);

// An output that must be equal, bit for bit but for the sign of a zero.
ExpectedOutput Exactly(Tensor values, const std::string& derivation);

// One of fill `exact`, whose data is such that every sum of every term in any
// order is exact in float. Throws InternalError for a value that float does
// not have.
ExpectedOutput ExactRegime(Tensor values);

// Derivations that operations share: exact/1, twice-naive-bf16/1.
const Derivation& ExactDerivation();
const Derivation& NaiveDerivation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_EXPECTED_H_
