// SPDX-License-Identifier: Apache-2.0
//
// sum_of_squares_adapters.h - adapters of the sum of squares to the CPU
// kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

TensorMap RunSumOfSquaresOnCpu(const Case& c, const TensorMap& inputs,
                               ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SUM_OF_SQUARES_SUM_OF_SQUARES_ADAPTERS_H_
