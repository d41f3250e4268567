// SPDX-License-Identifier: Apache-2.0
//
// add_operation.h - y += x, of arrays: sums of gradients.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   x [size], in float; y_before [size]
// outputs  y [size]
const Operation& AddOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_OPERATION_H_
