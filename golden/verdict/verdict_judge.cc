// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/verdict_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "golden/document/decimal.h"
#include "golden/document/fingerprint.h"

namespace softmoe::golden::internal {
namespace {

// Tokenizers that differ by no more are compared token by token.
constexpr double kSameTokens = 0.005;

// The field with the tau of a row, for trainings validated with several tau.
constexpr char kTauField[] = "eval.tau";

struct RowCell {
  const Row* row;
  const Cell* cell;
  size_t trainings;  // the same number for rows of the same trainings
};

// Whether two rows are the same trainings, validated with several tau: all
// their fields agree except that tau and those of class ignore. A row that has
// only some of another's seeds is no independent evidence, either.
bool AreTheSameTrainings(const Document& document, const Row& one,
                         const Row& other) {
  if (FieldValue(document, one, kTauField).empty() ||
      FieldValue(document, other, kTauField).empty()) {
    return false;
  }
  const auto compared = [&](const Row& row) {
    std::vector<Field> fields = FieldsOf(document, row);
    std::erase_if(fields, [](const Field& field) {
      return field.field_class == FieldClass::kIgnore;
    });
    return fields;
  };
  const std::vector<Field> fields = compared(one);
  return fields.size() == compared(other).size() &&
         std::ranges::all_of(fields, [&](const Field& field) {
           return field.name == kTauField ||
                  SameValue(field.value,
                            FieldValue(document, other, field.name));
         });
}

std::vector<RowCell> CollectCells(const Document& document,
                                  const std::string& table_id,
                                  const std::string& column,
                                  const std::string& corpus) {
  const Table* table = document.FindTable(table_id);
  if (table == nullptr) return {};
  const int64_t index = table->FindColumn(column);
  if (index < 0) return {};
  std::vector<RowCell> cells;
  for (const Row& row : table->rows) {
    if (!SameValue(FieldValue(document, row, kCorpusField), corpus)) continue;
    const auto same = std::ranges::find_if(cells, [&](const RowCell& one) {
      return AreTheSameTrainings(document, *one.row, row);
    });
    cells.push_back({&row, &row.cells[static_cast<size_t>(index)],
                     same == cells.end() ? cells.size() : same->trainings});
  }
  return cells;
}

// The factor that converts our losses to ones per token of the paper's, by the
// golden's row `golden_row`; 1 for columns that the golden lacks.
double TokenFactor(const Document& results, const Document& golden,
                   const Table& golden_table, const std::string& column,
                   const Row& golden_row, const Row& row) {
  const int64_t index = golden_table.FindColumn(column);
  if (index < 0) return 1;
  const auto tokens = TokenSizesOf(
      results, golden, golden_table.id,
      golden_table.columns[static_cast<size_t>(index)], golden_row, row);
  return tokens ? tokens->factor : 1;
}

// Whether the paper leaves part of the column's definition open (FORMAT.md,
// "Layout"). The definition is free text, so no part of it can be compared.
bool LeavesOpen(const Document& golden, const Column& column) {
  return golden.provenance.origin == Origin::kPaper &&
         (column.metric.find("not stated") != std::string::npos ||
          column.metric.find("read as") != std::string::npos);
}

}  // namespace

bool AreTheSameRuns(const Cell& one, const Cell& other) {
  return one.value == other.value && one.runs == other.runs &&
         one.deviation == other.deviation;
}

PooledDeviation PoolColumn(const Document& results, const Document& golden,
                           const std::string& table, const std::string& column,
                           const Row& row) {
  const std::string corpus = FieldValue(results, row, kCorpusField);
  const std::vector<RowCell> ours =
      CollectCells(results, table, column, corpus);
  const Table& golden_table = *golden.FindTable(table);
  const Row& golden_row = *golden_table.FindRow(row.id);
  const auto factor = [&](const Row& of) {
    return TokenFactor(results, golden, golden_table, column, golden_row, of);
  };
  const double own = factor(row);
  std::vector<Cell> cells;
  std::vector<size_t> trainings;
  for (const RowCell& one : ours) {
    if (!one.cell->deviation) continue;  // as Pool does
    cells.push_back(Scaled(*one.cell, factor(*one.row) / own));
    trainings.push_back(one.trainings);
  }
  const std::vector<RowCell> theirs =
      CollectCells(golden, table, column, corpus);
  for (const RowCell& one : theirs) {
    if (!one.cell->deviation) continue;
    const bool known = std::ranges::any_of(theirs, [&](const RowCell& same) {
      return same.trainings == one.trainings && same.cell->deviation &&
             std::ranges::any_of(ours, [&](const RowCell& each) {
               return AreTheSameRuns(*each.cell, *same.cell);
             });
    });
    if (known) continue;
    cells.push_back(Scaled(*one.cell, 1 / own));
    trainings.push_back(ours.size() + one.trainings);
  }
  std::vector<const Cell*> pooled;
  for (const Cell& cell : cells) pooled.push_back(&cell);
  return Pool(pooled, trainings);
}

bool DifferInSize(double size, double other) {
  return std::fabs(size / other - 1) > kSameTokens;
}

std::optional<TokenSizes> TokenSizesOf(const Document& results,
                                       const Document& golden,
                                       const std::string& table,
                                       const Column& column,
                                       const Row& golden_row, const Row& row) {
  const std::string theirs = FieldValue(golden, golden_row, kBytesField);
  const std::string ours = FieldValue(results, row, kBytesField);
  const auto golden_bytes = Decimal::Parse(theirs);
  if (golden.provenance.origin != Origin::kPaper || !golden_bytes ||
      column.unit != "nat/token") {
    return std::nullopt;
  }
  if (!(golden_bytes->ToDouble() > 0)) {
    throw DataError(
        fmt::format("the golden's row {}/{}: {} is {}; it must be above 0",
                    table, golden_row.id, kBytesField, theirs));
  }
  TokenSizes tokens{.field = {kBytesField, theirs, ours}};
  if (const auto bytes = Decimal::Parse(ours); bytes && bytes->ToDouble() > 0) {
    tokens.known = true;
    const double factor = golden_bytes->ToDouble() / bytes->ToDouble();
    if (DifferInSize(factor, 1)) tokens.factor = factor;
  }
  return tokens;
}

Cell Scaled(const Cell& cell, double factor) {
  Cell scaled = cell;
  scaled.value *= factor;
  scaled.low *= factor;
  scaled.high *= factor;
  if (cell.deviation) scaled.deviation = *cell.deviation * factor;
  return scaled;
}

std::string DescribeTokens(const TokenSizes& tokens, const Cell& ours) {
  const std::string& bytes = tokens.field.ours;
  std::string text =
      fmt::format("{} bytes per token in the golden, {} here",
                  tokens.field.golden, bytes.empty() ? "unknown" : bytes);
  if (tokens.converts()) {
    text += fmt::format(
        ": {} nat per token of ours is judged as {:.4f} per token of the "
        "paper's, ASSUMED (N27)",
        ours.text, ours.value * tokens.factor);
  }
  return text;
}

size_t AddDifference(const FieldDifference& field, const std::string& place,
                     std::vector<SetUpDifference>* differences) {
  const auto found =
      std::ranges::find(*differences, field, &SetUpDifference::field);
  if (found == differences->end()) {
    differences->push_back({field, {place}});
    return differences->size() - 1;
  }
  if (std::ranges::count(found->rows, place) == 0) {
    found->rows.push_back(place);
  }
  return static_cast<size_t>(found - differences->begin());
}

std::string ColumnsDiffer(const Document& golden, const Column& column,
                          const Column& ours) {
  if (column.unit != ours.unit) {
    return fmt::format("the golden is in {}, the results in {}", column.unit,
                       ours.unit);
  }
  if (column.metric == ours.metric || LeavesOpen(golden, column)) return "";
  return fmt::format("defined as '{}' in the golden, '{}' here", column.metric,
                     ours.metric);
}

Items ItemsOf(const Document& document, const Row& row, const Cell& cell,
              const std::string& column) {
  Items items;
  if (!cell.proportion) return items;
  items.total = cell.proportion->total;
  // A split is named after its column: arc_easy_validation of arc_e.
  for (const Field& field : FieldsOf(document, row)) {
    if (field.name.starts_with("eval." + column) &&
        field.name.ends_with(".sha256")) {
      items.sha256 = WithoutQuotes(field.value);
    }
  }
  return items;
}

std::string ItemsDiffer(const Items& one, const std::string& there,
                        const Items& other, const std::string& here) {
  if (one.total == 0 || other.total == 0) return "";
  if (one.total != other.total) {
    return fmt::format("of {} items {}, of {} {}", one.total, there,
                       other.total, here);
  }
  if (one.sha256.empty() || other.sha256.empty() ||
      one.sha256 == other.sha256) {
    return "";
  }
  return fmt::format("asked other items {} than {}", here, there);
}

std::vector<size_t> AssumedDefinition(
    const Document& golden, const Column& column, const Column& ours,
    const std::string& place, std::vector<SetUpDifference>* assumptions) {
  if (column.metric == ours.metric || !LeavesOpen(golden, column)) return {};
  return {AddDifference(
      {"definition of " + column.id, fmt::format("'{}'", column.metric),
       fmt::format("'{}'", ours.metric)},
      place, assumptions)};
}

bool AreSuspicious(const Cell& ours, const Document& golden,
                   const Cell& golden_cell) {
  if (IsSetting(golden, golden_cell) || RunsAreEqual(golden_cell)) return false;
  if (ours.flip_share) return *ours.flip_share == 0;
  return RunsAreEqual(ours) && !ours.proportion && !golden_cell.proportion;
}

std::vector<std::string> FieldNames(
    const std::vector<FieldDifference>& differences) {
  std::vector<std::string> names;
  for (const FieldDifference& difference : differences) {
    names.push_back(difference.name);
  }
  return names;
}

std::vector<size_t> IndicesOf(const std::vector<FieldDifference>& open,
                              const std::vector<SetUpDifference>& assumptions) {
  std::vector<size_t> indices;
  for (const FieldDifference& field : open) {
    const auto found = std::find_if(
        assumptions.begin(), assumptions.end(),
        [&](const SetUpDifference& one) { return one.field == field; });
    SOFTMOE_CHECK(found != assumptions.end()) << field.name;
    indices.push_back(static_cast<size_t>(found - assumptions.begin()));
  }
  return indices;
}

std::string JoinNames(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace softmoe::golden::internal
