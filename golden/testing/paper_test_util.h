// SPDX-License-Identifier: Apache-2.0
//
// paper_test_util.h - golden/paper/paper.h5 as built, for tests.
#ifndef SOFTMOE_GOLDEN_TESTING_PAPER_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_PAPER_TEST_UTIL_H_

#include <string>

#include "golden/document/document.h"

namespace softmoe::golden {

// The document, read once.
const Document& Paper();

// A cell of that document. Throws DataError if there is none.
const Cell& At(const std::string& table, const std::string& row,
               const std::string& column);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_PAPER_TEST_UTIL_H_
