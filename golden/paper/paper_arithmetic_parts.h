// SPDX-License-Identifier: Apache-2.0
//
// paper_arithmetic_parts.h - the pieces of CheckArithmetic, each of which
// appends checks.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_PARTS_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_PARTS_H_

#include <string>
#include <vector>

#include "golden/document/decimal.h"
#include "golden/document/document.h"
#include "golden/paper/paper_arithmetic.h"

namespace softmoe::golden::internal {

using Checks = std::vector<ArithmeticCheck>;

// Appends "the printed number equals `computed`, by value".
void Add(const std::string& rule, const Table& table, const Row& row,
         const std::string& column, const Decimal& computed,
         const std::string& note, const std::string& explanation,
         Checks* checks);

// Appends "the printed number is at most `bound`", or less if `strict`.
void AddAtMost(const std::string& rule, const Table& table, const Row& row,
               const std::string& column, const Decimal& bound, bool strict,
               const std::string& note, const std::string& explanation,
               Checks* checks);

// "main_results/owt/sparse/k1/val_loss".
std::string Place(const Table& table, const Row& row,
                  const std::string& column);
bool IsSparse(const Row& row);
// The bound on active experts for a row of T1: "<=2" -> 2.
Decimal Bound(const Document& paper, const Row& row);
// The id of the Sparse MoE row with the same corpus and group in T1.
std::string BaselineOf(const Document& paper, const Row& row);

// Derived columns: paper_arithmetic.cc.
void CheckParameters(const Document& paper, Checks* checks);
void CheckHours(const Document& paper, Checks* checks);
void CheckThroughput(const Document& paper, Checks* checks);
void CheckTimeOrder(const Document& paper, Checks* checks);
// Numbers compared with each other: paper_consistency.cc.
void CheckActiveExperts(const Document& paper, Checks* checks);
void CheckCounts(const Document& paper, Checks* checks);
void CheckRepeats(const Document& paper, Checks* checks);
void CheckBold(const Document& paper, Checks* checks);
// Numbers compared with the text: paper_statements.cc.
void CheckSoftCosts(const Document& paper, Checks* checks);
void CheckMeanActive(const Document& paper, Checks* checks);
void CheckTauOrder(const Document& paper, Checks* checks);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_PARTS_H_
