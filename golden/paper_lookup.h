// SPDX-License-Identifier: Apache-2.0
//
// paper_lookup.h - cells of the paper's document by name, or DataError.
#ifndef SOFTMOE_GOLDEN_PAPER_LOOKUP_H_
#define SOFTMOE_GOLDEN_PAPER_LOOKUP_H_

#include <string>

#include "golden/decimal.h"
#include "golden/document.h"

namespace softmoe::golden {

const Table& TableOf(const Document& paper, const std::string& table);
const Row& RowOf(const Table& table, const std::string& row);
const Column& ColumnOf(const Table& table, const std::string& column);
const Cell& CellOf(const Table& table, const Row& row,
                   const std::string& column);
// The printed number of a cell, exactly.
Decimal NumberOf(const Table& table, const Row& row, const std::string& column);
// The value of a field of the row, or of the document.
std::string FieldOf(const Document& paper, const Row& row,
                    const std::string& field);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_LOOKUP_H_
