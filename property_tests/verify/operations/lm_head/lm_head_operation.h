// SPDX-License-Identifier: Apache-2.0
//
// lm_head_operation.h - logits and the loss of every token (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LM_HEAD_LM_HEAD_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LM_HEAD_LM_HEAD_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   hidden [rows, d_model], head_weight [vocab_size, d_model], targets
//          (i32, [rows]), grad_scale []: the cotangent of every token's loss
// outputs  loss [rows], d_hidden, d_head_weight
const Operation& LmHeadOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LM_HEAD_LM_HEAD_OPERATION_H_
