// SPDX-License-Identifier: Apache-2.0
//
// experts_operation.h - the active experts of every token, weighted by their
// gates (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERTS_EXPERTS_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERTS_EXPERTS_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   hidden [rows, d_model], gates [rows, experts], active (i32, 0 or 1),
//          gate_up_weight [experts, d_model, 2*d_ffn], down_weight [experts,
//          d_ffn, d_model], out_before [rows, d_model], d_out
// outputs  out (out_before is added), d_hidden, d_gates (0 where inactive),
//          d_gate_up_weight, d_down_weight
const Operation& ExpertsOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERTS_EXPERTS_OPERATION_H_
