// SPDX-License-Identifier: Apache-2.0
//
// gemm_operation.h - the matrix product that the model is built on.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_GEMM_GEMM_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_GEMM_GEMM_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   a [m, k] or [k, m], b [k, n] or [n, k], c_before [m, n]
// outputs  c [m, n] = op(a) op(b), or += it
const Operation& GemmOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_GEMM_GEMM_OPERATION_H_
