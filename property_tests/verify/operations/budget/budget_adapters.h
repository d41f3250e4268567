// SPDX-License-Identifier: Apache-2.0
//
// budget_adapters.h - adapter of the budget to the allocation of the optimized
// library, on the host, and to the kernel that takes gradients back.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunBudget(const Case& c, const TensorMap& inputs,
                    const RowKernels& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_
