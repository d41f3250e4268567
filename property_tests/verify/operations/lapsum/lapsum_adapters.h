// SPDX-License-Identifier: Apache-2.0
//
// lapsum_adapters.h - adapters of LapSum to the router kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunLapSum(const Case& c, const TensorMap& inputs,
                    const RowKernels& run);
TensorMap RunLapSumAtDouble(const Case& c, const TensorMap& inputs);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LAPSUM_LAPSUM_ADAPTERS_H_
