// SPDX-License-Identifier: Apache-2.0
//
// routing_counts_adapters.h - the adapter of the counts to kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunRoutingCounts(const Case& c, const TensorMap& inputs,
                           const RowKernels& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTING_COUNTS_ROUTING_COUNTS_ADAPTERS_H_
