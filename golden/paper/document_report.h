// SPDX-License-Identifier: Apache-2.0
//
// document_report.h - documents as text for a terminal.
#ifndef SOFTMOE_GOLDEN_PAPER_DOCUMENT_REPORT_H_
#define SOFTMOE_GOLDEN_PAPER_DOCUMENT_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "golden/document/document.h"
#include "golden/paper/paper_arithmetic.h"

namespace softmoe::golden {

// Width, in columns, of all text printed here except tables.
constexpr size_t kTextWidth = 100;

// Origin, source, and the tables with their sizes.
std::string DescribeDocument(const Document& document);

// One table: '*' marks bold, '!' a percentage that no count can give.
std::string DescribeTable(const Document& document, const Table& table);

// Explains every number, one line per cell that has one: the interval, the
// counts that a percentage can stand for, the runs in a mean with their
// deviation, flags and notes. With `table`, only its cells.
std::string DescribeCells(const Document& document, const Table* table);

// Notes; with `table`, only those that concern it or its cells.
std::string DescribeNotes(const Document& document, const Table* table);

// Claims with their published verdicts, and how much of these survives sampling
// and seed noise; with `table`, only its own.
std::string DescribeClaims(const Document& document, const Table* table);

// Inconsistencies first, then the number of checks by rule.
std::string DescribeArithmetic(const std::vector<ArithmeticCheck>& checks);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_DOCUMENT_REPORT_H_
