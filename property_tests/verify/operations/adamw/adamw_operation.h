// SPDX-License-Identifier: Apache-2.0
//
// adamw_operation.h - a few updates of the optimizer (SPEC.md 4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   parameter, first_moment, second_moment [matrix_size + vector_size],
//          gradient [steps, the same]; learning_rate, beta1, beta2, epsilon,
//          weight_decay, clip_norm (0: off) []. The first matrix_size elements
//          are decayed, the others not. `completed` updates came before.
// outputs  parameter, first_moment, second_moment after all steps; norm
//          [steps], before clipping, in double (optional)
const Operation& AdamWOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_OPERATION_H_
