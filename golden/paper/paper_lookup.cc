// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/paper_lookup.h"

#include <fmt/core.h>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

constexpr char kOnlyThePaper[] =
    "only the paper's own goldens can be checked like this (golden show paper "
    "--arithmetic, or --protocol)";

[[noreturn]] void Missing(const std::string& what, const std::string& name) {
  throw DataError(fmt::format("the document has no {} '{}': {}", what, name,
                              kOnlyThePaper));
}

}  // namespace

void RequirePaper(const Document& document) {
  if (document.provenance.origin == Origin::kPaper) return;
  throw DataError(fmt::format("the document is of '{}', not of the paper: {}",
                              document.provenance.source, kOnlyThePaper));
}

const Table& TableOf(const Document& paper, const std::string& table) {
  const Table* found = paper.FindTable(table);
  if (found == nullptr) Missing("table", table);
  return *found;
}

const Row& RowOf(const Table& table, const std::string& row) {
  const Row* found = table.FindRow(row);
  if (found == nullptr) Missing("row", table.id + "/" + row);
  return *found;
}

const Column& ColumnOf(const Table& table, const std::string& column) {
  const int64_t index = table.FindColumn(column);
  if (index < 0) Missing("column", table.id + "/" + column);
  return table.columns[static_cast<size_t>(index)];
}

const Cell& CellOf(const Table& table, const Row& row,
                   const std::string& column) {
  const int64_t index = table.FindColumn(column);
  if (index < 0) Missing("column", table.id + "/" + column);
  return row.cells[static_cast<size_t>(index)];
}

Decimal NumberOf(const Table& table, const Row& row,
                 const std::string& column) {
  const auto number = Decimal::Parse(CellOf(table, row, column).text);
  if (!number) Missing("number", table.id + "/" + row.id + "/" + column);
  return *number;
}

std::string FieldOf(const Document& paper, const Row& row,
                    const std::string& field) {
  for (const auto* fields : {&row.fields, &paper.fields}) {
    for (const Field& candidate : *fields) {
      if (candidate.name == field) return candidate.value;
    }
  }
  Missing("field", row.id + "/" + field);
}

Decimal FieldNumber(const Document& paper, const Row& row,
                    const std::string& field) {
  const auto number = Decimal::Parse(FieldOf(paper, row, field));
  if (!number) {
    throw DataError("field " + field + " of row " + row.id +
                    " is no number; only the paper's own goldens will do");
  }
  return *number;
}

}  // namespace softmoe::golden
