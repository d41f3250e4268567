// SPDX-License-Identifier: Apache-2.0
//
// rope_operation.h - queries and keys turned by their position (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   qkv, d_rotated [sequences*length, 3*heads*head_dim]; base []
// outputs  rotated, d_qkv
const Operation& RopeOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_OPERATION_H_
