// SPDX-License-Identifier: Apache-2.0
//
// budget_adapters.h - adapter of the budget to the allocation of the optimized
// library.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

TensorMap RunBudgetOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BUDGET_BUDGET_ADAPTERS_H_
