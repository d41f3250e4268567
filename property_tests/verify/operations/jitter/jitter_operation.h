// SPDX-License-Identifier: Apache-2.0
//
// jitter_operation.h - the router's input with noise (SPEC.md 2.4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_JITTER_JITTER_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_JITTER_JITTER_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   hidden, d_hidden_before [rows, d_model]; in float: d_router_input
//          [rows, d_model], amplitude []
// outputs  router_input [rows, d_model], in float; d_hidden
const Operation& JitterOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_JITTER_JITTER_OPERATION_H_
