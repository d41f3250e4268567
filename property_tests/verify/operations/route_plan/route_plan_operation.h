// SPDX-License-Identifier: Apache-2.0
//
// route_plan_operation.h - rows of the experts from the selection of the
// router, and gradients back from these rows.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTE_PLAN_ROUTE_PLAN_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTE_PLAN_ROUTE_PLAN_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   active (i32), gates, d_row_gate: [rows, num_experts]; the last by the
//          (token, expert) whose row it is of
// outputs  expert_offsets (i32) [num_experts + 1]; row_token (i32), row_gate
//          [rows * max_active], -1 and 0 after the last row; token_rows (i32)
//          [rows, max_active]; d_gates [rows, num_experts]
const Operation& RoutePlanOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTE_PLAN_ROUTE_PLAN_OPERATION_H_
