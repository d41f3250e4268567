// SPDX-License-Identifier: Apache-2.0
//
// lapsum_operation.h - LapSum soft top-k and its gradients (SPEC.md 1).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   scores [rows, num_experts], mean_active [], temperature [],
//          d_weights [rows, num_experts]
// outputs  weights, d_scores [rows, num_experts], d_mean_active [] (sum over
//          rows), d_temperature [] (optional)
const Operation& LapSumOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_OPERATION_H_
