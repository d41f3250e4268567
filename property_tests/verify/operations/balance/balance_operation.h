// SPDX-License-Identifier: Apache-2.0
//
// balance_operation.h - what the load balance loss needs from the routers
// (SPEC.md 2.5).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_BALANCE_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_BALANCE_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// The sums over one balance group, whose basis is p/k or softmax:
// inputs   scores [rows, num_experts]; mean_active, temperature [];
//          d_basis_sums [num_experts], d_z_sum []
// outputs  basis_sums [num_experts], z_sum [] = sum logsumexp^2, counts (i32,
//          [num_experts]), d_scores [rows, num_experts], d_mean_active [] (0:
//          the balance loss takes k as constant)
const Operation& BalanceSumsOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_BALANCE_OPERATION_H_
