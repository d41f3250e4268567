// SPDX-License-Identifier: Apache-2.0
//
// attention_operation.h - causal attention of rotated queries and keys (SPEC.md
// 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   qkv [sequences*length, 3*heads*head_dim], rotated; d_out
// outputs  out [sequences*length, heads*head_dim], d_qkv
const Operation& AttentionOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_OPERATION_H_
