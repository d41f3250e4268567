// SPDX-License-Identifier: Apache-2.0
//
// cast_operation.h - from float to bf16 and back, at dtype bf16 only.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   x [size], in float; stored [size]
// outputs  rounded [size]; widened [size], in float
const Operation& CastOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_OPERATION_H_
