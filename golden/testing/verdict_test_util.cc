// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/verdict_test_util.h"

#include <fmt/format.h>

#include "core/errors.h"
#include "golden/testing/paper_test_util.h"

namespace softmoe::golden {

void SetValue(Cell* cell, double value) {
  cell->text = fmt::format("{:.4f}", value);
  cell->value = cell->low = cell->high = value;
}

Document Reproduction(int64_t runs, double spread) {
  Document results;
  results.provenance = {.origin = Origin::kOurRun,
                        .source = "verdict_test_util",
                        .generator = "verdict_test_util",
                        .created_utc = "",
                        .git_commit = "",
                        .config_hash = "",
                        .compiler = "",
                        .cpu = "",
                        .isa = "",
                        .more = {}};
  results.fields = Paper().fields;
  Table table = *Paper().FindTable("main_results");
  auto state = [](Field* field) {
    if (field->value.empty()) field->value = "something";
    field->known = Known::kStated;
  };
  for (Field& field : results.fields) state(&field);
  for (Row& row : table.rows) {
    for (Field& field : row.fields) state(&field);
    for (size_t c = 0; c < row.cells.size(); ++c) {
      Cell& cell = row.cells[c];
      cell.notes.clear();
      cell.flags.clear();
      cell.bold = false;
      cell.runs = runs;
      if (cell.empty()) continue;
      SetValue(&cell, cell.value);
      const bool exact = c < 4 && row.id.find("/sparse/") != std::string::npos;
      if (runs > 1) {
        cell.deviation =
            exact ? 0 : spread * table.columns[c].margin.value_or(0);
      }
    }
  }
  results.tables = {table};
  return results;
}

Cell& At(Document* document, const std::string& row,
         const std::string& column) {
  Table& table = document->tables[0];
  const auto c = static_cast<size_t>(table.FindColumn(column));
  for (Row& candidate : table.rows) {
    if (candidate.id == row) return candidate.cells[c];
  }
  throw InternalError("no row " + row);
}

const CellVerdict& Verdict(const Verdicts& verdicts, const std::string& row,
                           const std::string& column) {
  for (const CellVerdict& cell : verdicts.cells) {
    if (cell.row == row && cell.column == column) return cell;
  }
  throw InternalError("no verdict on " + row + " " + column);
}

const ClaimVerdict& Claimed(const Verdicts& verdicts, const std::string& id) {
  for (const ClaimVerdict& claim : verdicts.claims) {
    if (claim.claim == id) return claim;
  }
  throw InternalError("no verdict on claim " + id);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace softmoe::golden
