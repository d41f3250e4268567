// SPDX-License-Identifier: Apache-2.0
//
// router_adapters.h - adapters of the routers to their kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunRouter(const Case& c, const TensorMap& inputs,
                    const RowKernels& run);
TensorMap RunRouterAtDouble(const Case& c, const TensorMap& inputs);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_ROUTER_ADAPTERS_H_
