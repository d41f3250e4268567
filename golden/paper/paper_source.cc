// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/paper_source.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "core/text/suggestion.h"
#include "golden/document/claims.h"
#include "golden/document/decimal.h"
#include "golden/document/document_format.h"
#include "golden/document/fingerprint.h"

namespace softmoe::golden {

// ---- Printed tables.

const std::string& PrintedTable::Get(size_t row,
                                     const std::string& column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    throw DataError(fmt::format("{}: no column '{}'; {}", place, column,
                                Suggestion(column, columns)));
  }
  return rows.at(row)[static_cast<size_t>(found - columns.begin())];
}

PrintedTable ReadPrintedTable(const std::filesystem::path& path) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  PrintedTable table;
  table.columns = reader.Texts("columns");
  table.rows = reader.TextLists("rows");
  if (table.rows.empty()) {
    reader.FailAt("rows", "is empty; write an array of cells for each row");
  }
  reader.Finish();
  table.place = TomlPosition(*source.get("rows"));
  for (const toml::node& row : *source.get_as<toml::array>("rows")) {
    table.row_places.push_back(TomlPosition(row));
    const size_t cells = row.as_array()->size();
    if (cells != table.columns.size()) {
      throw DataError(
          fmt::format("{}: {} cells, but there are {} columns; "
                      "complete the row, with \"\" for an empty cell",
                      table.row_places.back(), cells, table.columns.size()));
    }
  }
  return table;
}

namespace {

using Strings = std::vector<std::string>;

// ---- Columns.

// A column, plus what only the source files say about it.
struct SourceColumn {
  Column column;
  std::string printed_as;        // name in the printed table
  std::string bold_name;         // name in the column of bold cells
  std::optional<int64_t> items;  // a percentage of this many items
  bool exact = false;            // settings: printed in full
  bool exact_integers = false;   // integers are exact, decimals rounded
  std::string derived;           // computed from this column, exact if it is
  std::string fixed_by;          // router.kind of rows in which it is a setting
};

SourceColumn ReadColumn(const std::string& id, const toml::table& table) {
  TomlReader reader(&table);
  SourceColumn source;
  Column& column = source.column;
  column.id = id;
  column.unit = reader.Text("unit");
  column.metric = reader.Text("metric");
  column.direction = ReadEnum(&reader, "direction", Direction::kNone);
  column.lane = ReadEnum(&reader, "lane", Lane::kReportOnly);
  // Clamped to the range of int; FirstProblem checks the real range.
  column.decimals = static_cast<int>(
      std::clamp<int64_t>(reader.Integer("decimals"), -1, 1000));
  column.margin = reader.OptionalNumber("margin");
  column.margin_basis = reader.TextOr("margin_basis", "");
  source.printed_as = reader.TextOr("printed_as", "");
  source.bold_name = reader.TextOr("bold_name", "");
  source.items = reader.OptionalInteger("items");
  if (source.items && (*source.items < 1 || *source.items > 1'000'000'000)) {
    reader.FailAt("items", "must be from 1 to 1000000000");
  }
  source.derived = reader.TextOr("derived", "");
  source.fixed_by = reader.TextOr("fixed_by", "");
  const std::string exact = reader.TextOr("exact", "");
  source.exact = exact == "all";
  source.exact_integers = exact == "integers";
  if (!exact.empty() && !source.exact && !source.exact_integers) {
    reader.FailAt("exact", "must be 'all' or 'integers'");
  }
  reader.Finish();
  return source;
}

// "owt/softmoe_star/k1.5/a2" matches "owt/*" and "*/k1.5/*".
bool Matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// ---- Remarks.

void AddNoteToCells(const Note& note, const std::string& place, Table* table) {
  const std::string prefix = table->id + "/";
  if (!place.starts_with(prefix)) return;
  const std::string within = place.substr(prefix.size());
  for (Row& row : table->rows) {
    for (size_t c = 0; c < row.cells.size(); ++c) {
      const std::string& column = table->columns[c].id;
      const bool concerned = within == row.id || within == column ||
                             within == row.id + "/" + column;
      Strings& notes = row.cells[c].notes;
      if (concerned &&
          std::find(notes.begin(), notes.end(), note.id) == notes.end()) {
        notes.push_back(note.id);
      }
    }
  }
}

// "claim/ID" -> all of "claim/ID.1", "claim/ID.2", ...; otherwise the place
// itself.
Strings Places(const std::string& place, const Document& document) {
  Strings places;
  for (const Claim& claim : document.claims) {
    if ("claim/" + claim.group() == place) {
      places.push_back("claim/" + claim.id);
    }
  }
  return places.empty() ? Strings{place} : places;
}

// Adds the claims of the file at `path` to `document`, which must already have
// its tables: ID, or ID.1, ID.2, ... if there are several pairs. Throws
// DataError, FILE:LINE:COLUMN, for a published verdict, of a pair or of most of
// them, that the tables contradict, and for missing or unknown keys;
// EnvironmentError if there is no file.
void AddClaims(const std::filesystem::path& path, Document* document) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  for (const toml::table* entry : reader.Tables("claims")) {
    TomlReader claim_reader(entry);
    Claim claim;
    const std::string id = claim_reader.Text("id");
    claim.text = claim_reader.Text("text");
    claim.scope = claim_reader.Text("scope");
    claim.op = claim_reader.Text("op");
    claim.of_cases = ReadEnum<Quantifier>(&claim_reader, "of_cases");
    const bool of_most = claim.of_cases == Quantifier::kMost;
    const std::vector<Strings> pairs = claim_reader.TextLists("pairs");
    const Strings published = claim_reader.Texts("published");
    const std::string published_most =
        of_most ? claim_reader.Text("published_most") : "";
    if (pairs.empty() || published.size() != pairs.size()) {
      claim_reader.FailAt("published",
                          fmt::format("has {} verdicts for {} pairs",
                                      published.size(), pairs.size()));
    }
    claim_reader.Finish();
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].size() != 2) {
        claim_reader.FailAt("pairs", "must be pairs [LEFT, RIGHT]");
      }
      claim.id = pairs.size() == 1 ? id : fmt::format("{}.{}", id, i + 1);
      claim.left = pairs[i][0];
      claim.right = pairs[i][1];
      claim.published_verdict = published[i];
      const std::string verdict = PublishedVerdict(*document, claim);
      if (verdict != claim.published_verdict) {
        claim_reader.FailAt(
            "published",
            fmt::format("says {} of {}, but the numbers give {}: {} {} {}",
                        claim.published_verdict, claim.id, verdict, claim.left,
                        claim.op, claim.right));
      }
      document->claims.push_back(claim);
    }
    if (!of_most) continue;
    if (const std::string verdict = PublishedOfMost(published);
        verdict != published_most) {
      claim_reader.FailAt("published_most",
                          fmt::format("says {} of {}, but its pairs give {}",
                                      published_most, id, verdict));
    }
  }
  reader.Finish();
}

// Adds the notes, and their ids to every cell that they concern: a note on a
// row or column belongs to all its cells, one on a table to none; "claim/ID"
// stands for all pairs of that claim, which must exist already. Throws as
// AddClaims.
void AddNotes(const std::filesystem::path& path, Document* document) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  for (const toml::table* entry : reader.Tables("notes")) {
    TomlReader note_reader(entry);
    Note note;
    note.id = note_reader.Text("id");
    note.text = note_reader.Text("text");
    for (const std::string& place : note_reader.Texts("concerns")) {
      const Strings places = Places(place, *document);
      note.concerns.insert(note.concerns.end(), places.begin(), places.end());
    }
    note_reader.Finish();
    for (const std::string& place : note.concerns) {
      for (Table& table : document->tables) {
        AddNoteToCells(note, place, &table);
      }
    }
    document->notes.push_back(std::move(note));
  }
  reader.Finish();
}

// ---- The document.

class PaperBuilder {
 public:
  explicit PaperBuilder(std::filesystem::path folder)
      : folder_(std::move(folder)),
        source_(ParseTomlFile(folder_ / "paper.toml")) {}

  Document Build() {
    TomlReader reader(&source_);
    document_.provenance.origin = Origin::kPaper;
    document_.provenance.source = reader.Text("source");
    document_.provenance.generator = "//golden/paper:paper_recorder";
    ReadNames(reader.Table("names"));
    ReadSharedColumns(reader.Table("columns"));
    for (const toml::table* table : reader.Tables("tables")) {
      document_.tables.push_back(ReadTable(*table));
    }
    for (const toml::table* field : reader.Tables("fields")) ReadField(*field);
    reader.Finish();
    for (const FixedColumn& fixed : fixed_) FlagFixed(fixed);
    AddClaims(folder_ / "claims.toml", &document_);
    AddNotes(folder_ / "notes.toml", &document_);
    const std::string problem = FirstProblem(document_);
    if (!problem.empty()) {
      throw DataError(fmt::format("'{}': {}", folder_.string(), problem));
    }
    return std::move(document_);
  }

 private:
  void ReadNames(const toml::table* names) {
    if (names == nullptr) return;
    TomlReader reader(names);
    for (const auto& [key, node] : *names) {
      names_[std::string(key)] = reader.Text(std::string(key));
    }
  }

  void ReadSharedColumns(const toml::table* columns) {
    if (columns == nullptr) return;
    TomlReader reader(columns);
    for (const auto& [key, node] : *columns) {
      const std::string id(key);
      columns_[id] = ReadColumn(id, *reader.Table(id));
    }
  }

  // The table's own column, or the shared one.
  SourceColumn FindColumn(TomlReader* reader, const toml::table* own,
                          const std::string& id) const {
    if (own != nullptr && own->get(id) != nullptr) {
      return ReadColumn(id, *TomlReader(own).Table(id));
    }
    const auto shared = columns_.find(id);
    if (shared == columns_.end()) {
      reader->FailAt("columns", fmt::format("names '{}', which is in neither "
                                            "[columns] nor own_columns",
                                            id));
    }
    return shared->second;
  }

  // A column in which rows with this router.kind measure nothing.
  struct FixedColumn {
    size_t table, column;
    std::string kind;
  };

  struct Exception {
    std::string row, column;
    Rounding rounding;
    bool used = false;
  };

  std::vector<Exception> ReadExceptions(TomlReader* reader) const {
    std::vector<Exception> exceptions;
    for (const toml::table* entry : reader->Tables("exceptions")) {
      TomlReader exception(entry);
      exceptions.push_back(
          {exception.Text("row"), exception.Text("column"),
           ReadEnum(&exception, "rounding", Rounding::kNearest)});
      exception.Finish();
    }
    return exceptions;
  }

  Table ReadTable(const toml::table& source) {
    TomlReader reader(&source);
    Table table;
    table.id = reader.Text("id");
    table.title = reader.Text("title");
    const std::string label = reader.TextOr("label", "");
    table.caption = fmt::format("{} [softmoe.tex:{}{}]", reader.Text("caption"),
                                reader.Integer("tex_line"),
                                label.empty() ? "" : ", " + label);
    table.rounding = ReadEnum(&reader, "rounding", Rounding::kUnknown);
    const toml::table* own = reader.Table("own_columns");
    std::vector<SourceColumn> columns;
    for (const std::string& id : reader.Texts("columns")) {
      columns.push_back(FindColumn(&reader, own, id));
      if (!columns.back().fixed_by.empty()) {
        fixed_.push_back({document_.tables.size(), table.columns.size(),
                          columns.back().fixed_by});
      }
      table.columns.push_back(columns.back().column);
    }
    std::vector<Exception> exceptions = ReadExceptions(&reader);
    const std::string cells = reader.TextOr("cells", "");
    const Strings id_parts = reader.Texts("row_id");
    const Strings labels = reader.Texts("labels");
    const std::string bold = reader.TextOr("bold", "");
    const toml::table* row_fields = reader.Table("row_fields");
    for (const std::string& id : reader.Texts("rows")) {
      table.rows.push_back({id, {}, {}, std::vector<Cell>(columns.size())});
    }
    reader.Finish();
    if (cells.empty()) return table;
    const PrintedTable printed = ReadPrintedTable(folder_ / cells);
    for (size_t r = 0; r < printed.rows.size(); ++r) {
      Row row;
      row.id = RowId(printed, r, id_parts);
      for (const std::string& name : labels) {
        const std::string& text = printed.Get(r, name);
        if (!text.empty()) row.labels.push_back(LabelText(name, text));
      }
      AddRowFields(printed, r, row_fields, &row);
      for (const SourceColumn& column : columns) {
        Rounding rounding = table.rounding;
        for (Exception& exception : exceptions) {
          if (exception.column == column.column.id &&
              Matches(exception.row, row.id)) {
            rounding = exception.rounding;
            exception.used = true;
          }
        }
        Cell cell = ReadCell(column, rounding, printed, r);
        cell.bold = !bold.empty() && !column.bold_name.empty() &&
                    IsListed(printed.Get(r, bold), column.bold_name);
        row.cells.push_back(std::move(cell));
      }
      FlagDerived(columns, &row);
      table.rows.push_back(std::move(row));
    }
    for (const Exception& exception : exceptions) {
      if (!exception.used) {
        reader.FailAt("exceptions",
                      fmt::format("names no cell: {} {}", exception.row,
                                  exception.column));
      }
    }
    return table;
  }

  // Settings become "k=1.5", names stay plain text.
  static std::string LabelText(const std::string& name,
                               const std::string& text) {
    return name == "dataset" || name == "model" ? text : name + "=" + text;
  }

  // Fills "{column}" with the cell's text, or its name in [names]; parts whose
  // column is empty are left out.
  std::string RowId(const PrintedTable& printed, size_t row,
                    const Strings& parts) const {
    std::string id;
    for (const std::string& part : parts) {
      const size_t open = part.find('{'), close = part.find('}');
      std::string text = part;
      if (open != std::string::npos && close != std::string::npos) {
        const std::string& value =
            printed.Get(row, part.substr(open + 1, close - open - 1));
        if (value.empty()) continue;
        const auto name = names_.find(value);
        text = part.substr(0, open) +
               (name == names_.end() ? value : name->second) +
               part.substr(close + 1);
      }
      id += (id.empty() ? "" : "/") + text;
    }
    return id;
  }

  static void AddRowFields(const PrintedTable& printed, size_t r,
                           const toml::table* row_fields, Row* row) {
    if (row_fields == nullptr) return;
    TomlReader reader(row_fields);
    for (const auto& [key, node] : *row_fields) {
      const std::string column(key);
      row->fields.push_back({reader.Text(column), printed.Get(r, column),
                             FieldClass::kIgnore, Known::kStated});
    }
  }

  static bool IsListed(const std::string& list, const std::string& name) {
    const std::string padded = "|" + list + "|";
    return padded.find("|" + name + "|") != std::string::npos;
  }

  // A number computed from an exact one is not a measurement either.
  static void FlagDerived(const std::vector<SourceColumn>& columns, Row* row) {
    for (size_t c = 0; c < columns.size(); ++c) {
      for (size_t from = 0; from < columns.size(); ++from) {
        const Cell& base = row->cells[from];
        if (columns[from].column.id == columns[c].derived && !base.empty() &&
            base.low == base.high) {
          row->cells[c].flags.push_back("DERIVED");
        }
      }
    }
  }

  // However coarsely it is printed, a setting is no measurement either.
  void FlagFixed(const FixedColumn& fixed) {
    for (Row& row : document_.tables[fixed.table].rows) {
      Cell& cell = row.cells[fixed.column];
      if (cell.low != cell.high &&
          FieldValue(document_, row, "router.kind") == fixed.kind) {
        cell.flags.push_back("DERIVED");
      }
    }
  }

  static Cell ReadCell(const SourceColumn& source, Rounding rounding,
                       const PrintedTable& printed, size_t row) {
    Cell cell;
    cell.text = printed.Get(row, source.printed_as);
    if (cell.empty()) return cell;
    const std::optional<Decimal> number = Decimal::Parse(cell.text);
    // Intervals and counts need more digits, and there are 18 in all.
    constexpr size_t kMaxLength = 14;
    if (!number || cell.text.size() > kMaxLength) {
      throw DataError(fmt::format(
          "{}: '{}' in column '{}' is not a number of at most {} characters",
          printed.row_places[row], cell.text, source.printed_as, kMaxLength));
    }
    cell.value = number->ToDouble();
    const bool exact =
        source.exact || (source.exact_integers && number->decimals() == 0);
    const Interval interval = exact ? Interval{cell.value, cell.value}
                                    : PrintedInterval(*number, rounding);
    cell.low = interval.low;
    cell.high = interval.high;
    if (source.items) {
      cell.proportion = Proportion{
          *source.items, CountsThatPrint(*number, *source.items, rounding)};
      if (cell.proportion->counts.empty()) {
        cell.flags.push_back("GRIM_IMPOSSIBLE");
      }
    }
    return cell;
  }

  static void Replace(const Field& field, std::vector<Field>* fields) {
    for (Field& old : *fields) {
      if (old.name == field.name) {
        old = field;
        return;
      }
    }
    fields->push_back(field);
  }

  void ReadField(const toml::table& source) {
    TomlReader reader(&source);
    Field field;
    field.name = reader.Text("name");
    field.value = reader.Text("value");
    field.field_class = ReadEnum(&reader, "class", FieldClass::kMustMatch);
    field.known = ReadEnum(&reader, "known", Known::kStated);
    const Strings patterns = reader.Texts("rows");
    reader.Finish();
    if (patterns.empty()) {
      Replace(field, &document_.fields);
      return;
    }
    std::vector<bool> used(patterns.size());
    for (Table& table : document_.tables) {
      for (Row& row : table.rows) {
        bool matches = false;
        for (size_t p = 0; p < patterns.size(); ++p) {
          if (!Matches(patterns[p], row.id)) continue;
          matches = true;
          used[p] = true;
        }
        if (matches) Replace(field, &row.fields);
      }
    }
    for (size_t p = 0; p < patterns.size(); ++p) {
      if (!used[p]) {
        reader.FailAt("rows", "matches no row: " + patterns[p]);
      }
    }
  }

  std::filesystem::path folder_;
  toml::table source_;
  Document document_;
  std::map<std::string, std::string> names_;
  std::map<std::string, SourceColumn> columns_;
  std::vector<FixedColumn> fixed_;
};

}  // namespace

Document BuildPaper(const std::filesystem::path& folder) {
  return PaperBuilder(folder).Build();
}

}  // namespace softmoe::golden
