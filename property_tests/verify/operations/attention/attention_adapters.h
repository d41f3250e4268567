// SPDX-License-Identifier: Apache-2.0
//
// attention_adapters.h - adapters of attention to the CPU kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

template <typename Activation>  // float or Bf16
TensorMap RunAttention(const Case& c, const TensorMap& inputs,
                       const RowKernelsOf<Activation>& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_
