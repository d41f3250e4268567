// SPDX-License-Identifier: Apache-2.0
//
// balance_loss_operation.h - auxiliary losses from a router's sums (SPEC.md
// 2.5).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   counts (i32), probability_sums: [num_experts]; z_sum, aux_loss_coeff,
//          z_loss_coeff, group_scale: []
// outputs  load_balance_loss, z_loss: [], in double; d_probability [num_experts]
const Operation& BalanceLossOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_OPERATION_H_
