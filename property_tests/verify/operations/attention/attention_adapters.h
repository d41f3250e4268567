// SPDX-License-Identifier: Apache-2.0
//
// attention_adapters.h - adapters of attention to the CPU kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

TensorMap RunAttentionOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ATTENTION_ATTENTION_ADAPTERS_H_
