// SPDX-License-Identifier: Apache-2.0
//
// adamw_adapters.h - the kernel of an update, and the optimized library's
// optimizer.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// The host's part of the optimizer is done by the adapter, without the norm; on
// the CPU the optimizer itself runs instead.
TensorMap RunAdamW(const Case& c, const TensorMap& inputs,
                   const RowKernels& run);
TensorMap RunAdamWOnCpu(const Case& c, const TensorMap& inputs,
                        ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADAMW_ADAMW_ADAPTERS_H_
