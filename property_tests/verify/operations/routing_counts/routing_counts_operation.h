// SPDX-License-Identifier: Apache-2.0
//
// routing_counts_operation.h - how many experts each token has (SPEC.md 5.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   active (i32), gates, scores: [rows, num_experts]; cutoff []; bad_score
//          (i32) [], an element of scores, or -1
// outputs  active_histogram (i32) [num_experts + 1], below_cutoff (i32) [],
//          bad_value [], in double
const Operation& RoutingCountsOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_OPERATION_H_
