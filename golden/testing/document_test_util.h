// SPDX-License-Identifier: Apache-2.0
//
// document_test_util.h - a small document that uses every part of the schema.
#ifndef SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_

#include "golden/document/document.h"

namespace softmoe::golden {

// Two tables (statistical, exact and report columns; an empty cell, counts,
// deviation, flags, notes, bold), notes, claims and fields of every class.
Document ExampleDocument();

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_
