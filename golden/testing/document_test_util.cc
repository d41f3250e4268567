// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/document_test_util.h"

#include <fmt/core.h>

#include <sstream>

#include "core/config/config_text.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "golden/paper/paper_lookup.h"

namespace softmoe::golden {

Document ExampleDocument() {
  Document document;
  document.provenance = {
      .origin = Origin::kOurRun,
      .source = "//:grid run smoke",
      .generator = "grid 0.2",
      .created_utc = "",
      .git_commit = "0123abc",
      .config_hash = "feed",
      .compiler = "g++ 12.2",
      .cpu = "an x86",
      .isa = "v3",
      .more = {{"seed", "1234", FieldClass::kIgnore, Known::kStated}}};
  document.fields = {
      {"model.d_model", "640", FieldClass::kMustMatch, Known::kStated},
      {"training.aux", "0.01", FieldClass::kMustMatch, Known::kAssumed},
      {"data.noise", "", FieldClass::kReport, Known::kUnknown}};
  Table main;
  main.id = "main";
  main.title = "Main results, łódź";
  main.caption = "tex line 7";
  main.rounding = Rounding::kNearest;
  main.columns = {
      {"loss", "nat/token", "mean cross-entropy", Direction::kLowerIsBetter,
       Lane::kStatistical, 2, 0.03, "ruling 2"},
      {"piqa", "percent", "accuracy", Direction::kHigherIsBetter,
       Lane::kStatistical, 2, 2.25, "2 standard errors"},
      {"params",
       "1e6 params",
       "active parameters",
       Direction::kNone,
       Lane::kExact,
       2,
       {},
       ""}};
  Row first;
  first.id = "owt/sparse/k1";
  first.labels = {"Sparse MoE", "k=1"};
  first.fields = {
      {"router.tau", "1.1", FieldClass::kMustMatch, Known::kStated}};
  first.cells = {
      {.text = "2.84",
       .value = 2.84,
       .low = 2.835,
       .high = 2.845,
       .bold = true,
       .runs = 3,
       .deviation = 0.004,
       .notes = {"N1"}},
      {.text = "61.53",
       .value = 61.53,
       .low = 61.525,
       .high = 61.535,
       .proportion = Proportion{1838, {1131}},
       .flags = {"CONFLICTS_WITH", "DERIVED"}},
      {.text = "107.74", .value = 107.74, .low = 107.735, .high = 107.745}};
  Row second;
  second.id = "owt/sparse/k2";
  second.cells = {
      {.flags = {"DIVERGED"}, .notes = {"N1", "N2"}},
      {.text = "62.63",
       .value = 62.63,
       .low = 62.625,
       .high = 62.635,
       .runs = 2,
       .deviation = 0.5,
       .proportion = Proportion{1838, {}},
       .flip_share = 0.125,
       .flags = {"GRIM_IMPOSSIBLE"}},
      {.text = "156.94", .value = 156.94, .low = 156.935, .high = 156.945}};
  main.rows = {first, second};
  Table empty;
  empty.id = "a_table_without_rows";  // sorts before "main", comes after it
  empty.title = "Nothing yet";
  empty.rounding = Rounding::kUnknown;
  document.tables = {main, empty};
  document.notes = {
      {"N1", "A remark.", {"main/owt/sparse/k1/loss", "claim/lower"}},
      {"N2",
       "Another.",
       {"text/abstract", "main", "main/owt/sparse/k2", "main/piqa"}}};
  document.claims = {{"lower", "k2 is lower", "owt/sparse/k2:loss", "<",
                      "owt/sparse/k1:loss", "main", "NO_DATA"},
                     {"at_most", "a number", "owt/sparse/k1:loss", "<=", "3.0",
                      "main", "HOLDS"}};
  return document;
}

const Document& Paper() {
  static const Document paper =
      ReadDocument(RunfilePath("golden/paper/paper.h5"));
  return paper;
}

const Cell& At(const std::string& table, const std::string& row,
               const std::string& column) {
  const Table& found = TableOf(Paper(), table);
  return CellOf(found, RowOf(found, row), column);
}

void SetValue(Cell* cell, double value) {
  cell->text = fmt::format("{:.4f}", value);
  cell->value = cell->low = cell->high = value;
}

Document Reproduction(int64_t runs, double spread, const std::string& id) {
  Document results;
  results.provenance = {.origin = Origin::kOurRun,
                        .source = "document_test_util",
                        .generator = "document_test_util",
                        .created_utc = "",
                        .git_commit = "",
                        .config_hash = "",
                        .compiler = "",
                        .cpu = "",
                        .isa = "",
                        .more = {}};
  results.fields = Paper().fields;
  Table table = *Paper().FindTable(id);
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
      const bool exact = c < 5 && row.id.find("/sparse/") != std::string::npos;
      if (runs > 1) {
        cell.deviation =
            exact ? 0 : spread * table.columns[c].margin.value_or(0);
      }
    }
  }
  results.tables = {table};
  return results;
}

Document WithTokens(Document results, const std::string& bytes) {
  for (Row& row : results.tables[0].rows) {
    if (!row.id.starts_with("owt/")) continue;
    for (Field& field : row.fields) {
      if (field.name == "data.bytes_per_token") field.value = bytes;
    }
  }
  return results;
}

Document InHalfTokens(Document results) {
  Row& row = results.tables[0].rows[0];
  for (Field& field : row.fields) {
    if (field.name == "data.bytes_per_token") field.value = "2.20";
  }
  Cell& loss = At(&results, row.id, "val_loss");
  const double deviation = *loss.deviation;
  SetValue(&loss, loss.value / 2);
  loss.deviation = deviation / 2;
  return results;
}

void WriteRecord(const RecordedResults& results,
                 const std::filesystem::path& path) {
  Hdf5Writer file(path, RunRecordKind());
  file.WriteAttribute("/", "margins_sha256", results.margins_sha256);
  WriteRecordedResults(results, file);
  file.Commit();
}

ImportTemplate FilledIn(const Document& golden, const Table& table) {
  const ImportTemplate empty = MakeImportTemplate(golden, table);
  ImportTemplate filled;
  std::istringstream values(empty.values), set_up(empty.set_up);
  for (std::string line; std::getline(values, line);) {
    for (const Row& row : table.rows) {
      for (size_t c = 0; c < table.columns.size(); ++c) {
        if (line == row.id + ",1," + table.columns[c].id + ",") {
          line += row.cells[c].text;
        }
      }
    }
    filled.values += line + "\n";
  }
  const std::string comment = "  # in the golden: ";
  for (std::string line; std::getline(set_up, line);) {
    const size_t value = line.find("\"\"");
    const size_t said = line.find(comment);
    if (value != line.npos && !line.starts_with('#')) {
      std::string fact = "a test";
      if (said != line.npos) {
        fact = line.substr(said + comment.size());
        fact.resize(fact.rfind(" ("));
      }
      line = line.substr(0, value) +
             TomlText(fact == "nothing" ? "unknown" : fact);
    }
    filled.set_up += line + "\n";
  }
  return filled;
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

}  // namespace softmoe::golden
