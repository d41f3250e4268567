// SPDX-License-Identifier: Apache-2.0
//
// paper_lookup.h - looks up cells of the paper's document by name, or throws
// DataError.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_LOOKUP_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_LOOKUP_H_

#include <string>

#include "golden/document/decimal.h"
#include "golden/document/document.h"

namespace softmoe::golden {

// Throws DataError for a document whose origin is not the paper.
void RequirePaper(const Document& document);

// Lookups by id. Anything missing is a DataError that says that only the
// paper's own goldens will do; the results live as long as the document.
const Table& TableOf(const Document& paper, const std::string& table);
const Row& RowOf(const Table& table, const std::string& row);
const Column& ColumnOf(const Table& table, const std::string& column);
// `row` belongs to `table`.
const Cell& CellOf(const Table& table, const Row& row,
                   const std::string& column);
// The printed number of a cell, exactly, in the unit of its column. An empty
// cell is a DataError, too.
Decimal NumberOf(const Table& table, const Row& row, const std::string& column);
// The value of a row's field, or else of the document's; "" if the paper does
// not state it.
std::string FieldOf(const Document& paper, const Row& row,
                    const std::string& field);
// That value as a number, exactly. Any other text is a DataError, too.
Decimal FieldNumber(const Document& paper, const Row& row,
                    const std::string& field);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_LOOKUP_H_
