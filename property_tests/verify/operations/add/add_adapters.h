// SPDX-License-Identifier: Apache-2.0
//
// add_adapters.h - the adapter of += to kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

template <typename Activation>  // float or Bf16
TensorMap RunAdd(const Case& c, const TensorMap& inputs,
                 const RowKernelsOf<Activation>& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ADD_ADD_ADAPTERS_H_
