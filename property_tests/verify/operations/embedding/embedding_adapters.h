// SPDX-License-Identifier: Apache-2.0
//
// embedding_adapters.h - adapters of the embedding to the CPU kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_ADAPTERS_H_

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

TensorMap RunEmbeddingOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool);
TensorMap RunEmbeddingAtDouble(const Case& c, const TensorMap& inputs);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_ADAPTERS_H_
