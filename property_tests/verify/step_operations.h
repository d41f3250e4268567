// SPDX-License-Identifier: Apache-2.0
//
// step_operations.h - what happens once per step around the model, and the
// matrix product below it (SPEC.md 2.2, 4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_STEP_OPERATIONS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_STEP_OPERATIONS_H_

#include "property_tests/verify/operation.h"

namespace softmoe::verify {

// inputs   budget_logits, d_mean_active [layers]; mean_active_experts, tau,
//          expansion_factor []
// outputs  mean_active, cutoff [layers] (computed in double: ruling 5),
//          max_active, balance_top (i32, [layers]), d_budget_logits [layers]
const Operation& BudgetOperation();

// inputs   parameter, first_moment, second_moment [matrix_size + vector_size],
//          gradient [steps, the same]; learning_rate, beta1, beta2, epsilon,
//          weight_decay, clip_norm (0: off) []. The first matrix_size elements
//          are decayed, the others not. `completed` updates came before.
// outputs  parameter, first_moment, second_moment after all steps; norm
//          [steps], before clipping, in double (optional)
const Operation& AdamWOperation();

// inputs   x [size]
// outputs  sum_of_squares [], in double
const Operation& SumOfSquaresOperation();

// inputs   a [m, k] or [k, m], b [k, n] or [n, k], c_before [m, n]
// outputs  c [m, n] = op(a) op(b), or += it
const Operation& GemmOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_STEP_OPERATIONS_H_
