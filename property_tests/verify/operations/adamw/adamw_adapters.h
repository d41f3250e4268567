// SPDX-License-Identifier: Apache-2.0
//
// adamw_adapters.h - adapters to the kernel of one update, and to the optimizer
// of the optimized library.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// The adapter does the host's part of the optimizer, except for the norm; on
// the CPU the optimizer itself runs instead.
TensorMap RunAdamW(const Case& c, const TensorMap& inputs,
                   const RowKernels& run);
TensorMap RunAdamWOnCpu(const Case& c, const TensorMap& inputs,
                        ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_
