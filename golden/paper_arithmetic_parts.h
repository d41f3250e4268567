// SPDX-License-Identifier: Apache-2.0
//
// paper_arithmetic_parts.h - the pieces of CheckArithmetic; each appends.
#ifndef SOFTMOE_GOLDEN_PAPER_ARITHMETIC_PARTS_H_
#define SOFTMOE_GOLDEN_PAPER_ARITHMETIC_PARTS_H_

#include <string>
#include <vector>

#include "golden/decimal.h"
#include "golden/document.h"
#include "golden/paper_arithmetic.h"

namespace softmoe::golden::internal {

using Checks = std::vector<ArithmeticCheck>;

// Appends "the printed number equals `computed`, by value".
void Add(const std::string& rule, const Table& table, const Row& row,
         const std::string& column, const Decimal& computed,
         const std::string& note, const std::string& explanation,
         Checks* checks);

// Derived columns: paper_arithmetic.cc.
void CheckParameters(const Document& paper, Checks* checks);
void CheckHours(const Document& paper, Checks* checks);
void CheckThroughput(const Document& paper, Checks* checks);
void CheckTimeOrder(const Document& paper, Checks* checks);
// Numbers against each other: paper_consistency.cc.
void CheckActiveExperts(const Document& paper, Checks* checks);
void CheckCounts(const Document& paper, Checks* checks);
void CheckRepeats(const Document& paper, Checks* checks);
void CheckBold(const Document& paper, Checks* checks);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_PAPER_ARITHMETIC_PARTS_H_
