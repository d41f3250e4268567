// SPDX-License-Identifier: Apache-2.0
//
// rope_adapters.h - adapters of RoPE to kernels, and to their body at double.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

template <typename Activation>  // float or Bf16
TensorMap RunRope(const Case& c, const TensorMap& inputs,
                  const RowKernelsOf<Activation>& run);
TensorMap RunRopeAtDouble(const Case& c, const TensorMap& inputs);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROPE_ROPE_ADAPTERS_H_
