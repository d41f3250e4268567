// SPDX-License-Identifier: Apache-2.0
//
// verdict_test_util.h - imitations of a grid's results for the tests of Judge:
// the paper's own rows, with runs and deviations that a grid would report.
#ifndef SOFTMOE_GOLDEN_TESTING_VERDICT_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_VERDICT_TEST_UTIL_H_

#include <cstdint>
#include <string>

#include "golden/document/document.h"
#include "golden/testing/paper_test_util.h"  // Paper, for users of this header
#include "golden/verdict/verdict.h"

namespace softmoe::golden {

// A measured number with four digits after the point.
void SetValue(Cell* cell, double value);

// The report of a grid that reproduces the paper's table to the digit: `runs`
// runs of each row with a standard deviation of `spread` margins.
Document Reproduction(int64_t runs, double spread);

// A cell of the first table, a verdict on one, a verdict on a claim. Throw
// InternalError if there is none.
Cell& At(Document* document, const std::string& row, const std::string& column);
const CellVerdict& Verdict(const Verdicts& verdicts, const std::string& row,
                           const std::string& column);
const ClaimVerdict& Claimed(const Verdicts& verdicts, const std::string& id);

bool Contains(const std::string& text, const std::string& part);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_VERDICT_TEST_UTIL_H_
