// SPDX-License-Identifier: Apache-2.0
//
// sum_of_squares_operation.h - the sum that gradient clipping uses (SPEC.md 4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   x [size]
// outputs  sum_of_squares [], in double
const Operation& SumOfSquaresOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_OPERATION_H_
