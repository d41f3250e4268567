// SPDX-License-Identifier: Apache-2.0
//
// router_operation.h - the routers (SPEC.md 2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   scores, d_gates [rows, num_experts]; mean_active, temperature,
//          cutoff []
// outputs  soft_weights, gates, d_scores [rows, num_experts], active (i32, 0 or
//          1), d_mean_active [] (0 if sparse)
const Operation& RouterOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_OPERATION_H_
