// SPDX-License-Identifier: Apache-2.0
//
// budget_operation.h - how the layers share the budget, and what follows from
// the share of a layer (SPEC.md 2.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   budget_logits, d_mean_active [layers]; mean_active_experts, tau,
//          expansion_factor []
// outputs  mean_active, cutoff [layers] (computed in double: ruling 5),
//          max_active, balance_top (i32, [layers]), d_budget_logits [layers]
const Operation& BudgetOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_OPERATION_H_
