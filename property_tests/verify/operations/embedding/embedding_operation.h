// SPDX-License-Identifier: Apache-2.0
//
// embedding_operation.h - looks up rows of a table, and sums their cotangents
// (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   table [vocab_size, d_model], ids (i32, [rows]), d_out
// outputs  out [rows, d_model], d_table
const Operation& EmbeddingOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EMBEDDING_EMBEDDING_OPERATION_H_
