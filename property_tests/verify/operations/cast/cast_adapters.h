// SPDX-License-Identifier: Apache-2.0
//
// cast_adapters.h - the adapter of casts to kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunCast(const Case& c, const TensorMap& inputs,
                  const Bf16Kernels& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_CAST_CAST_ADAPTERS_H_
