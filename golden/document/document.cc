// SPDX-License-Identifier: Apache-2.0
#include "golden/document/document.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/text/ascii.h"
#include "golden/document/decimal.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {

const Row* Table::FindRow(const std::string& row_id) const {
  for (const Row& row : rows) {
    if (row.id == row_id) return &row;
  }
  return nullptr;
}

int64_t Table::FindColumn(const std::string& column_id) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].id == column_id) return static_cast<int64_t>(i);
  }
  return -1;
}

const Table* Document::FindTable(const std::string& table_id) const {
  for (const Table& table : tables) {
    if (table.id == table_id) return &table;
  }
  return nullptr;
}

bool IsSetting(const Document& golden, const Cell& golden_cell) {
  return !golden_cell.empty() &&
         (std::ranges::count(golden_cell.flags, "DERIVED") > 0 ||
          (golden.provenance.origin == Origin::kPaper &&
           golden_cell.low == golden_cell.high));
}

// ---- What makes a document meaningless: checks that throw a Problem.

namespace {

// Caught inside FirstProblem.
struct Problem {
  std::string text;
};

constexpr const char* kFillIn =
    "fill it in where the file is made: a number without it means nothing";

constexpr const char* kMeasure =
    "store what was measured; a run that gave no number has an empty cell "
    "with the flag DIVERGED";

// Whether the text is a placeholder to be filled in later.
bool IsPlaceholder(const std::string& text) {
  const std::string lower = LowerCase(text);
  static const std::set<std::string> kWords = {
      "todo", "tbd",  "fixme",       "xxx",   "?",          "??",
      "???",  "null", "placeholder", "dummy", "lorem ipsum"};
  return kWords.contains(lower) || lower.starts_with("todo:") ||
         lower.starts_with("fixme:");
}

bool IsPlaceholder(double value) {
  static const std::set<double> kSentinels = {-999, -9999, -99999, -999999};
  return kSentinels.contains(value) || std::fabs(value) >= 1e300;
}

// Throws "'PLACE' PROBLEM; REMEDY".
[[noreturn]] void Fail(const std::string& place, const std::string& problem,
                       const std::string& remedy) {
  throw Problem{fmt::format("'{}' {}; {}", place, problem, remedy)};
}

// Refuses NUL only: for names that people choose, and for fields, whose values
// may be "none" and "?".
void CheckNoNul(const std::string& place, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    Fail(place, "contains a NUL character", "remove it");
  }
}

// Refuses NUL and placeholders ("TODO", "TBD", "?", ...).
void CheckText(const std::string& place, const std::string& text) {
  CheckNoNul(place, text);
  if (IsPlaceholder(text)) {
    Fail(place, fmt::format("is the placeholder '{}'", text), kFillIn);
  }
}

void CheckNonEmpty(const std::string& place, const std::string& text) {
  CheckText(place, text);
  if (text.empty()) Fail(place, "is empty", kFillIn);
}

// Refuses NaN, infinities and sentinels such as -999.
void CheckFinite(const std::string& place, double value) {
  if (!std::isfinite(value)) {
    Fail(place, fmt::format("is {}", value), kMeasure);
  }
  if (IsPlaceholder(value)) {
    Fail(place, fmt::format("is the placeholder {}", value), kMeasure);
  }
}

// Checks an id of a table or column, which is also the name of an HDF5 group.
void CheckPathId(const std::string& place, const std::string& id) {
  const bool ok = !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!ok) {
    Fail(place, fmt::format("has the id '{}'", id),
         "use lower-case letters, digits and '_'");
  }
  if (IsPlaceholder(id)) Fail(place, "is a placeholder", kFillIn);
}

// Checks an id of a row, note or claim, to which claims and notes refer.
void CheckId(const std::string& place, const std::string& id) {
  CheckNonEmpty(place, id);
  const bool ok = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return c > ' ' && c != ':' && c != '\'' && c < 127;
  });
  if (!ok) {
    Fail(place, fmt::format("has the id '{}'", id),
         "use printable ASCII without spaces, ':' and quotes");
  }
}

void CheckUnique(const std::string& place, const std::string& id,
                 std::set<std::string>* seen) {
  if (!seen->insert(id).second) {
    Fail(place, fmt::format("occurs twice: '{}'", id), "rename one of them");
  }
}

void CheckFields(const std::string& group, const std::vector<Field>& fields) {
  std::set<std::string> seen;
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    CheckId(fmt::format("{}/name[{}]", group, i), field.name);
    CheckUnique(fmt::format("{}/name[{}]", group, i), field.name, &seen);
    const std::string value_place =
        fmt::format("{}/value[{}] ({})", group, i, field.name);
    CheckNoNul(value_place, field.value);
    // A value that the source leaves unknown is empty.
    if (field.value.empty() && field.known != Known::kUnknown) {
      Fail(value_place, "is empty although it is not 'unknown'", kFillIn);
    }
  }
}

void CheckProvenance(const Provenance& provenance) {
  const std::string group = "/provenance";
  CheckNonEmpty(group + "@source", provenance.source);
  CheckNonEmpty(group + "@generator", provenance.generator);
  CheckText(group + "@created_utc", provenance.created_utc);
  CheckText(group + "@git_commit", provenance.git_commit);
  CheckText(group + "@config_hash", provenance.config_hash);
  CheckText(group + "@compiler", provenance.compiler);
  CheckText(group + "@cpu", provenance.cpu);
  CheckText(group + "@isa", provenance.isa);
  CheckFields(group, provenance.more);
}

void CheckColumn(const std::string& group, const Column& column) {
  CheckNonEmpty(group + "@unit", column.unit);
  CheckNonEmpty(group + "@metric_def", column.metric);
  if (column.decimals < 0 || column.decimals > 12) {
    Fail(group + "@decimals", fmt::format("is {}", column.decimals),
         "use 0 to 12");
  }
  CheckText(group + "@margin_basis", column.margin_basis);
  if (column.margin) {
    CheckFinite(group + "@margin", *column.margin);
    if (!(*column.margin > 0)) {
      Fail(group + "@margin", fmt::format("is {}", *column.margin),
           "a margin is greater than 0");
    }
    CheckNonEmpty(group + "@margin_basis", column.margin_basis);
  } else if (column.lane == Lane::kStatistical || column.lane == Lane::kBound) {
    Fail(group + "@margin",
         fmt::format("is missing, but the lane is '{}'", EnumName(column.lane)),
         "state the margin before any run, or use the lane 'report'");
  }
}

// `unit`: one unit of the last digit as printed.
void CheckProportion(const std::string& place, const Cell& cell, double unit) {
  const Proportion& proportion = *cell.proportion;
  if (!(cell.value >= 0 && cell.value <= 100)) {
    Fail(place, fmt::format("belongs to the value {}", cell.value),
         "a proportion is given in percent, from 0 to 100");
  }
  if (proportion.total <= 0) {
    Fail(place, fmt::format("has {} items", proportion.total),
         "a proportion needs at least one item");
  }
  for (size_t i = 0; i < proportion.counts.size(); ++i) {
    const int64_t count = proportion.counts[i];
    if (count < 0 || count > proportion.total ||
        (i > 0 && count <= proportion.counts[i - 1])) {
      Fail(place,
           fmt::format("has the count {} of {}", count, proportion.total),
           "counts ascend and lie between 0 and the total");
    }
    const auto total = static_cast<double>(proportion.total);
    const double percent = 100 * static_cast<double>(count) / total;
    if (!(std::fabs(percent - cell.value) <= unit + 100 / total)) {
      Fail(place,
           fmt::format("has the count {} of {}, but the text is {}", count,
                       proportion.total, cell.text),
           "give the counts whose percentage prints as that text");
    }
  }
}

void CheckEmptyCell(const std::string& group, size_t row, const Cell& cell) {
  if (cell.value != 0 || cell.low != 0 || cell.high != 0 || cell.deviation ||
      cell.proportion || cell.flip_share || cell.bold) {
    Fail(fmt::format("{}/text[{}]", group, row),
         "is empty, but the cell has a number",
         "print the number, or leave value, interval, deviation and counts "
         "empty too");
  }
}

// `text` must be a number that can be printed for `value`: they differ by at
// most one unit of the last digit, as both rounding and truncation ensure.
// Returns that unit.
double CheckCellText(const std::string& place, const Cell& cell) {
  CheckText(place, cell.text);
  const std::optional<Decimal> decimal = Decimal::Parse(cell.text);
  if (!decimal) {
    Fail(place, fmt::format("is '{}'", cell.text),
         "a cell holds a plain decimal number, or nothing");
  }
  const double unit = std::pow(10.0, -decimal->decimals());
  const double slack = 4e-16 * std::fabs(cell.value);
  if (!(std::fabs(decimal->ToDouble() - cell.value) <= unit + slack)) {
    Fail(place,
         fmt::format("is '{}', but the value is {}", cell.text, cell.value),
         "print the value that is stored");
  }
  return unit;
}

void CheckCell(const std::string& group, size_t row, const Cell& cell) {
  auto place = [&](const char* name) {
    return fmt::format("{}/{}[{}]", group, name, row);
  };
  CheckFinite(place("value"), cell.value);
  CheckFinite(place("value_lo"), cell.low);
  CheckFinite(place("value_hi"), cell.high);
  if (cell.deviation) CheckFinite(place("sd"), *cell.deviation);
  for (const std::string& flag : cell.flags) {
    const bool ok =
        !flag.empty() && std::all_of(flag.begin(), flag.end(), [](char c) {
          return (c >= 'A' && c <= 'Z') || c == '_';
        });
    if (!ok) {
      Fail(place("flags"), fmt::format("has the flag '{}'", flag),
           "flags are capital letters and '_'");
    }
  }
  if (cell.runs < 1) {
    Fail(place("n_runs"), fmt::format("is {}", cell.runs),
         "a value stands for at least one run");
  }
  if (cell.empty()) return CheckEmptyCell(group, row, cell);
  const double unit = CheckCellText(place("text"), cell);
  if (std::ranges::count(cell.flags, "DIVERGED") > 0) {
    Fail(place("flags"),
         fmt::format("has DIVERGED, but the text is {}", cell.text),
         "leave the cell of a run that gave no number empty");
  }
  if (!(cell.low <= cell.value && cell.value <= cell.high)) {
    Fail(place("value"),
         fmt::format("{} is outside its interval [{}, {}]", cell.value,
                     cell.low, cell.high),
         "value_lo <= value <= value_hi must hold");
  }
  if (cell.deviation && (*cell.deviation < 0 || cell.runs < 2)) {
    Fail(place("sd"),
         fmt::format("is {} with {} run(s)", *cell.deviation, cell.runs),
         "a deviation is at least 0 and needs two runs");
  }
  if (cell.proportion) {
    CheckProportion(place("count_N"), cell, unit);
  }
  if (cell.flip_share) {
    CheckFinite(place("flip_share"), *cell.flip_share);
    if (*cell.flip_share < 0 || *cell.flip_share > 1 || cell.runs < 2 ||
        !cell.proportion) {
      Fail(place("flip_share"),
           fmt::format("is {} with {} run(s){}", *cell.flip_share, cell.runs,
                       cell.proportion ? "" : " and no number of items"),
           "a share of items that flip is from 0 to 1 and needs two runs and "
           "the number of items");
    }
  }
}

void CheckTable(const Table& table) {
  const std::string group = "/tables/" + table.id;
  CheckNonEmpty(group + "@title", table.title);
  CheckText(group + "@caption", table.caption);
  std::set<std::string> seen;
  for (const Column& column : table.columns) {
    const std::string path = group + "/cells/" + column.id;
    CheckPathId(path, column.id);
    CheckUnique(path, column.id, &seen);
    CheckColumn(path, column);
  }
  seen.clear();
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Row& row = table.rows[r];
    const std::string place = fmt::format("{}/rows[{}]", group, r);
    CheckId(place, row.id);
    CheckUnique(place, row.id, &seen);
    for (const std::string& label : row.labels) {
      CheckNoNul(group + "/labels", label);
    }
    CheckFields(group + "/fields", row.fields);
    if (row.cells.size() != table.columns.size()) {
      Fail(place,
           fmt::format("({}) has {} cells, but the table has {} columns",
                       row.id, row.cells.size(), table.columns.size()),
           "give every row one cell per column, an empty one where there is "
           "no value");
    }
    for (size_t c = 0; c < row.cells.size(); ++c) {
      CheckCell(group + "/cells/" + table.columns[c].id, r, row.cells[c]);
    }
  }
}

// Whether `reference` is "ROW:COLUMN" of a cell of the table.
bool IsCell(const Table& table, std::string_view reference) {
  const size_t colon = reference.rfind(':');
  return colon != std::string_view::npos &&
         table.FindRow(std::string(reference.substr(0, colon))) != nullptr &&
         table.FindColumn(std::string(reference.substr(colon + 1))) >= 0;
}

// Pairs of which most must hold must be at least two and all marked kMost, and
// no claim may have their common id.
void CheckClaimsOnMost(const std::vector<Claim>& claims) {
  for (size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].of_cases != Quantifier::kMost) continue;
    const std::string place = fmt::format("/claims/of_cases[{}]", i);
    const std::string group = claims[i].group();
    size_t pairs = 0;
    for (const Claim& other : claims) {
      if (other.group() != group) continue;
      ++pairs;
      if (other.of_cases != Quantifier::kMost || other.id == group) {
        Fail(
            place,
            fmt::format(
                "is 'most', but {} is not marked 'most' or lacks a pair number",
                other.id),
            "mark all pairs ID.1, ID.2, ... as 'most', or none");
      }
    }
    if (pairs < 2) {
      Fail(place,
           fmt::format("is 'most', but {} is the only pair", claims[i].id),
           "mark it as 'every', or give several pairs");
    }
  }
}

// Everything named by claims must be in the document.
void CheckClaims(const Document& document) {
  static const std::set<std::string> kOperators = {"<",  "<=", ">",
                                                   ">=", ">~", "=="};
  static const std::set<std::string> kVerdicts = {
      "HOLDS", "REFUTED", "NOT_RESOLVED_BY_PAPER", "NO_DATA"};
  std::set<std::string> seen;
  for (size_t i = 0; i < document.claims.size(); ++i) {
    const Claim& claim = document.claims[i];
    auto place = [&](const char* name) {
      return fmt::format("/claims/{}[{}]", name, i);
    };
    CheckId(place("id"), claim.id);
    CheckUnique(place("id"), claim.id, &seen);
    CheckNonEmpty(place("text"), claim.text);
    const Table* table = document.FindTable(claim.scope);
    if (table == nullptr) {
      Fail(place("scope"), fmt::format("names no table: '{}'", claim.scope),
           "use the id of a table of this file");
    }
    if (!kOperators.contains(claim.op)) {
      Fail(place("op"), fmt::format("is '{}'", claim.op),
           "use <, <=, >, >=, >~ or ==");
    }
    if (!IsCell(*table, claim.left)) {
      Fail(place("lhs"), fmt::format("names no cell: '{}'", claim.left),
           "write ROW:COLUMN of the table " + claim.scope);
    }
    if (!IsCell(*table, claim.right) && !Decimal::Parse(claim.right)) {
      Fail(place("rhs"),
           fmt::format("is neither cell nor number: '{}'", claim.right),
           "write ROW:COLUMN of the table " + claim.scope + ", or a number");
    }
    if (!kVerdicts.contains(claim.published_verdict)) {
      Fail(place("published_verdict"),
           fmt::format("is '{}'", claim.published_verdict),
           "use HOLDS, REFUTED, NOT_RESOLVED_BY_PAPER or NO_DATA");
    }
  }
  CheckClaimsOnMost(document.claims);
}

bool IsTableOrPart(const Document& document, const std::string& place) {
  for (const Table& table : document.tables) {
    if (place == table.id) return true;
    if (!place.starts_with(table.id + "/")) continue;
    const std::string rest = place.substr(table.id.size() + 1);
    if (table.FindRow(rest) != nullptr) return true;
    const size_t slash = rest.rfind('/');
    if (slash == std::string::npos) {
      return table.FindColumn(rest) >= 0;
    }
    return table.FindRow(rest.substr(0, slash)) != nullptr &&
           table.FindColumn(rest.substr(slash + 1)) >= 0;
  }
  return false;
}

// Everything named by notes must be in the document, and so must every note
// that cells name.
void CheckNotes(const Document& document) {
  std::set<std::string> places;
  for (const Claim& claim : document.claims) places.insert("claim/" + claim.id);
  std::set<std::string> seen;
  for (size_t i = 0; i < document.notes.size(); ++i) {
    const Note& note = document.notes[i];
    CheckId(fmt::format("/notes/id[{}]", i), note.id);
    CheckUnique(fmt::format("/notes/id[{}]", i), note.id, &seen);
    CheckNonEmpty(fmt::format("/notes/text[{}]", i), note.text);
    for (const std::string& concern : note.concerns) {
      const bool known = (concern.starts_with("text/") && concern.size() > 5) ||
                         places.contains(concern) ||
                         IsTableOrPart(document, concern);
      if (!known) {
        Fail("/notes/concerns",
             fmt::format("of {} is '{}', which is not here", note.id, concern),
             "write TABLE, TABLE/ROW, TABLE/COLUMN, TABLE/ROW/COLUMN, "
             "claim/ID or text/PLACE");
      }
    }
  }
  for (const Table& table : document.tables) {
    for (const Row& row : table.rows) {
      for (const Cell& cell : row.cells) {
        for (const std::string& note : cell.notes) {
          if (!seen.contains(note)) {
            Fail(fmt::format("/tables/{}/cells", table.id),
                 fmt::format("refers in row {} to the note '{}', which is not "
                             "in /notes",
                             row.id, note),
                 "add the note, or remove the reference");
          }
        }
      }
    }
  }
}

}  // namespace

std::string FirstProblem(const Document& document) {
  try {
    CheckProvenance(document.provenance);
    CheckFields("/fields", document.fields);
    std::set<std::string> seen;
    for (const Table& table : document.tables) {
      CheckPathId("/tables/" + table.id, table.id);
      CheckUnique("/tables/" + table.id, table.id, &seen);
      CheckTable(table);
    }
    CheckClaims(document);
    CheckNotes(document);
  } catch (const Problem& problem) {
    return problem.text;
  }
  return "";
}

}  // namespace softmoe::golden
