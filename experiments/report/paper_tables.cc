// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/paper_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "core/comparator.h"
#include "experiments/grids/cost_model.h"
#include "experiments/report/row_summary.h"
#include "golden/document/fingerprint.h"
#include "golden/verdict/statistics.h"
#include "golden/verdict/verdict_report.h"

namespace softmoe::experiments {
namespace {

using golden::Cell;
using golden::CellVerdict;
using golden::Column;
using golden::Document;
using golden::Row;
using golden::Table;
using golden::Verdicts;
using trainer::RunResult;

constexpr double kConfidence = 0.95;
constexpr const char* kMain = "main_results";
// The table of what the figures show, for which the paper printed no numbers.
constexpr const char* kFigures = "allocation";
constexpr const char* kNotJudged = "not judged";
constexpr const char* kEmpty = "-";  // a cell without a number, as printed

// The tables of the paper that a grid repeats.
std::vector<std::string> Repeated(const Grid& grid) {
  if (grid.table.empty() || grid.table == kMain) return {kMain, "model_size"};
  if (grid.table == kFigures) return {};
  return {grid.table};
}

// ---- Tables that no results file holds.

Cell CellOf(const Sample& sample) {
  Cell cell;
  if (sample.runs == 0 || !std::isfinite(sample.mean)) return cell;
  cell.value = cell.low = cell.high = sample.mean;
  cell.text = fmt::format("{:.6f}", sample.mean);
  cell.runs = sample.runs;
  cell.deviation = sample.deviation;
  return cell;
}

using Read = std::function<double(const RunResult&)>;

// NaN on the CPU, which has no number per GPU.
double GpusOf(const RunResult& result) {
  return result.devices == 0 ? std::nan("")
                             : static_cast<double>(result.devices);
}

// Keyed by column of T3 and T4; columns that are not here are not measured.
std::map<std::string, Read> ClockMeasures() {
  return {
      {"train_ae", [](const RunResult& r) { return r.train_ae; }},
      {"train_time", HoursOf},
      {"iteration_time", MillisecondsAStep},
      {"gpus", GpusOf},
      {"gpu_hours", [](const RunResult& r) { return GpusOf(r) * HoursOf(r); }},
      {"throughput",
       [](const RunResult& r) { return TokensASecond(r) / GpusOf(r); }}};
}

// T2, from the configuration of a row.
std::map<std::string, double> SizeMeasures(const ModelConfig& model) {
  const auto experts = static_cast<double>(model.num_experts);
  return {{"total_params", ActiveParameters(model, experts) / 1e9},
          {"blocks", static_cast<double>(model.num_layers)},
          {"heads", static_cast<double>(model.num_heads)},
          {"experts", experts},
          {"d_model", static_cast<double>(model.d_model)},
          {"d_ffn", static_cast<double>(model.d_ffn)}};
}

// Makes a document with the table `id` and the fields of the rows of the
// results, so that it is judged as the results are.
class Unwritten {
 public:
  Unwritten(const GridOutcome& outcome, const JudgedResults& judged,
            const Document& paper)
      : results_(judged.results),
        paper_(paper),
        rows_(SummarizeRows(outcome, judged.variant)) {}

  Document Make(const std::string& id) const {
    const Table& golden_table = *paper_.FindTable(id);
    Document document;
    document.provenance = results_.provenance;
    document.fields = results_.fields;
    Table table;
    table.id = id;
    table.title = golden_table.title;
    table.columns = golden_table.columns;
    std::set<std::string> taken;
    for (const RowSummary& row : rows_) {
      const bool sizes = id == "model_size";
      const std::string row_id = sizes ? "all" : row.paper_id();
      const Row* fields = results_.FindTable(kMain)->FindRow(row.paper_id());
      if (golden_table.FindRow(row_id) == nullptr || fields == nullptr ||
          !taken.insert(row_id).second) {
        continue;
      }
      Row out{row_id, {}, fields->fields, {}};
      out.cells = sizes ? SizeCells(row, table) : ClockCells(row, table);
      table.rows.push_back(std::move(out));
    }
    document.tables = {std::move(table)};
    return document;
  }

 private:
  static std::vector<Cell> SizeCells(const RowSummary& row,
                                     const Table& table) {
    const auto sizes = SizeMeasures(row.config().model);
    std::vector<Cell> cells;
    for (const Column& column : table.columns) {
      cells.push_back(CellOf({sizes.at(column.id), {}, 1}));
    }
    return cells;
  }

  static std::vector<Cell> ClockCells(const RowSummary& row,
                                      const Table& table) {
    const auto measures = ClockMeasures();
    std::vector<Cell> cells;
    for (const Column& column : table.columns) {
      const auto read = measures.find(column.id);
      Cell cell;
      if (read == measures.end()) {
        cell.flags = {"NOT_MEASURED"};
      } else if (row.AnyFailed()) {
        cell.flags = {"DIVERGED"};
      } else if (row.Finished().empty()) {
        cell.flags = {"NOT_RUN"};
      } else {
        cell = CellOf(row.Over(read->second));
        if (cell.empty()) cell.flags = {"NOT_MEASURED"};
      }
      cells.push_back(std::move(cell));
    }
    return cells;
  }

  const Document& results_;
  const Document& paper_;
  std::vector<RowSummary> rows_;
};

bool IsUnwritten(const std::string& table) {
  return table == "model_size" || table == "compute" || table == "throughput";
}

// ---- Cells.

std::string Printed(const Cell& mean, const Column& column) {
  if (mean.empty()) return "";
  const std::optional<double> half = HalfWidth(mean);
  const bool whole = mean.value == std::round(mean.value);
  if (whole && column.decimals == 0) return Setting(mean.value);
  // A setting, or a number that is the same in every run, is exact.
  if (column.lane == golden::Lane::kExact || (half && *half == 0)) {
    return whole ? Setting(mean.value)
                 : fmt::format("{:.{}f}", mean.value, column.decimals);
  }
  const int digits = column.decimals + 1;
  return fmt::format("{:.{}f}", mean.value, digits) +
         (half ? fmt::format(" ± {:.{}f}", *half, digits) : "");
}

// Why a row has no number in a column that is not judged.
std::string Missing(const Row* row, const Cell* cell) {
  if (row == nullptr) return "this grid has no such row";
  const auto has = [&](const char* flag) {
    return cell != nullptr && std::ranges::count(cell->flags, flag) > 0;
  };
  if (has("NOT_RUN")) return "not run";
  if (has("DIVERGED")) return "a run diverged, so the row gives no number";
  return "not measured";
}

// The cells of one table, judged with one reading of tau.
class TableCells {
 public:
  TableCells(const Document& results, const Verdicts& verdicts,
             const std::string& variant)
      : results_(results), variant_(variant) {
    for (const CellVerdict& cell : verdicts.cells) Add(cell, true);
    for (const CellVerdict& cell : verdicts.recorded) Add(cell, false);
  }

  const Row* FindRow(const Table& golden_table, const Row& row) const {
    const Table* table = results_.FindTable(golden_table.id);
    return table == nullptr ? nullptr : table->FindRow(row.id);
  }

  std::vector<PaperCell> Make(const Table& golden_table,
                              const Row& golden_row) const {
    const Table* table = results_.FindTable(golden_table.id);
    const Row* row = FindRow(golden_table, golden_row);
    std::vector<PaperCell> cells;
    for (size_t c = 0; c < golden_table.columns.size(); ++c) {
      const Column& column = golden_table.columns[c];
      const int64_t index = row == nullptr ? -1 : table->FindColumn(column.id);
      const Cell* mean =
          index < 0 ? nullptr : &row->cells[static_cast<size_t>(index)];
      PaperCell cell;
      cell.table = golden_table.id;
      cell.row = golden_row.id;
      cell.column = column.id;
      cell.variant = variant_;
      cell.notes = golden_row.cells[c].notes;
      if (golden_row.cells[c].empty()) {
        cell.paper = cell.ours = kEmpty;
        cell.verdict = kNotJudged;
        cell.reason = "the paper has no number here";
        cells.push_back(std::move(cell));
        continue;
      }
      cell.paper = golden_row.cells[c].text;
      if (mean != nullptr && !mean->empty()) {
        cell.ours = Printed(*mean, column);
        if (column.lane != golden::Lane::kExact) cell.runs = mean->runs;
      }
      const auto found =
          verdicts_.find({golden_table.id, golden_row.id, column.id});
      const bool judged = found != verdicts_.end() && found->second.judged;
      cell.verdict =
          judged ? StatusName(found->second.cell->status) : kNotJudged;
      if (found != verdicts_.end()) {
        cell.reason = golden::ReasonText(*found->second.cell);
      } else {
        cell.reason = Missing(row, mean);
      }
      cells.push_back(std::move(cell));
    }
    return cells;
  }

 private:
  struct Found {
    const CellVerdict* cell;
    bool judged;
  };

  void Add(const CellVerdict& cell, bool judged) {
    verdicts_[{cell.table, cell.row, cell.column}] = {&cell, judged};
  }

  const Document& results_;
  std::string variant_;
  std::map<std::array<std::string, 3>, Found> verdicts_;
};

}  // namespace

std::optional<double> HalfWidth(const Cell& mean) {
  if (mean.runs < 2 || !mean.deviation) return {};
  const auto n = static_cast<double>(mean.runs);
  return golden::StudentQuantile((1 + kConfidence) / 2, n - 1) *
         *mean.deviation / std::sqrt(n);
}

std::vector<PaperCell> PaperCells(const GridOutcome& outcome,
                                  const std::vector<JudgedResults>& judged,
                                  const Document& paper,
                                  const std::string& accuracies) {
  const std::vector<std::string> repeated = Repeated(outcome.grid);
  std::vector<PaperCell> cells;
  for (const Table& golden_table : paper.tables) {
    if (golden_table.id == kFigures) continue;
    const bool own = std::ranges::count(repeated, golden_table.id) > 0;
    std::vector<Document> documents;
    std::vector<Verdicts> verdicts;
    std::vector<TableCells> readings;
    documents.reserve(judged.size());
    verdicts.reserve(judged.size());
    for (const JudgedResults& one : judged) {
      if (one.accuracies != accuracies) continue;
      if (own && IsUnwritten(golden_table.id)) {
        documents.push_back(
            Unwritten(outcome, one, paper).Make(golden_table.id));
        verdicts.push_back(golden::Judge(documents.back(), paper));
        readings.emplace_back(documents.back(), verdicts.back(), one.variant);
      } else {
        readings.emplace_back(one.results, one.verdicts, one.variant);
      }
    }
    for (const Row& golden_row : golden_table.rows) {
      std::vector<const TableCells*> shown;
      size_t with_row = 0;
      for (const TableCells& reading : readings) {
        const Row* row = reading.FindRow(golden_table, golden_row);
        if (row == nullptr) continue;
        ++with_row;
        const auto repeats = [&](const TableCells* other) {
          return other->FindRow(golden_table, golden_row)->cells == row->cells;
        };
        if (std::ranges::none_of(shown, repeats)) shown.push_back(&reading);
      }
      if (with_row == 0 && own) shown = {&readings.front()};
      // A row that is the same in every reading, as those of Sparse MoE are,
      // names no reading.
      const bool alike = shown.size() == 1 && with_row != 1;
      for (const TableCells* reading : shown) {
        for (PaperCell& cell : reading->Make(golden_table, golden_row)) {
          if (alike) cell.variant.clear();
          cells.push_back(std::move(cell));
        }
      }
    }
  }
  return cells;
}

// ---- The tables as the paper prints them.

namespace {

// The paper's headings of the columns, by id.
std::string Heading(const std::string& column) {
  static const std::map<std::string, std::string> kHeadings = {
      {"mean_active_experts", "k"},
      {"expansion_factor", "alpha"},
      {"train_ae", "Train-AE"},
      {"infer_ae", "Infer-AE"},
      {"active_params", "Active-Param"},
      {"piqa", "PIQA"},
      {"hellaswag", "HELLA"},
      {"arc_e", "ARC-E"},
      {"val_loss", "Loss"},
      {"ae", "AE"},
      {"tau", "tau"},
      {"infer_tau", "tau"},
      {"load_variance", "Load variance (relative)"},
      {"train_time", "Time (h)"},
      {"gpus", "GPUs"},
      {"gpu_hours", "GPUh"},
      {"iteration_time", "Avg iter time (ms)"},
      {"throughput", "Tokens/s/GPU"},
      {"gpu_utilization", "GPU util. (%)"},
      {"total_params", "Total params (B)"},
      {"blocks", "Blocks"},
      {"heads", "Att. heads"},
      {"experts", "Experts"},
      {"d_model", "d_attn"},
      {"d_ffn", "d_fnn"}};
  const auto found = kHeadings.find(column);
  return found == kHeadings.end() ? column : found->second;
}

// "OWT, SoftMoE*"; labels such as "k=1.5" are left out if they have a column.
std::string Label(const Table& table, const Row& row) {
  std::vector<std::string> labels;
  for (const std::string& label : row.labels) {
    const std::string name = label.substr(0, label.find('='));
    const bool column =
        name != label && std::ranges::any_of(table.columns, [&](const auto& c) {
          return name.starts_with(Heading(c.id));
        });
    if (!column) labels.push_back(label);
  }
  return fmt::format("{}", fmt::join(labels, ", "));
}

// "FAIL: Loss; else PASS", the most severe first; the reasons where not judged.
std::string Summary(const std::vector<const PaperCell*>& cells) {
  static const std::vector<std::string> kBySeverity = {
      "FAIL",         "MISTRUSTED",  "NOT_COMPARABLE",
      "INCONCLUSIVE", "UNSUPPORTED", "PASS"};
  std::map<std::pair<size_t, std::string>, std::vector<std::string>> groups;
  for (const PaperCell* cell : cells) {
    if (cell->paper == kEmpty) continue;
    const auto rank = static_cast<size_t>(
        std::ranges::find(kBySeverity, cell->verdict) - kBySeverity.begin());
    const std::string text =
        cell->verdict == kNotJudged ? cell->reason : cell->verdict;
    groups[{rank, text}].push_back(Heading(cell->column));
  }
  std::string summary;
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    const std::string& text = group->first.second;
    const bool last = std::next(group) == groups.end();
    if (groups.size() == 1) return text;
    summary +=
        last ? "else " + text
             : fmt::format("{}: {}; ", text, fmt::join(group->second, ", "));
  }
  return summary;
}

// The cells of one row, by reading.
using Readings =
    std::vector<std::pair<std::string, std::vector<const PaperCell*>>>;

Readings ReadingsOf(const std::vector<PaperCell>& cells, const Table& table,
                    const Row& row) {
  Readings readings;
  for (const PaperCell& cell : cells) {
    if (cell.table != table.id || cell.row != row.id) continue;
    if (readings.empty() || readings.back().first != cell.variant) {
      readings.push_back({cell.variant, {}});
    }
    readings.back().second.push_back(&cell);
  }
  return readings;
}

// One text for each column of the table.
std::vector<std::string> Texts(
    const Table& table, const std::vector<const PaperCell*>& cells,
    const std::function<std::string(const PaperCell&)>& text) {
  std::vector<std::string> texts;
  for (const Column& column : table.columns) {
    const auto found = std::ranges::find_if(cells, [&](const PaperCell* cell) {
      return cell->column == column.id;
    });
    texts.push_back(found == cells.end() ? kEmpty : text(**found));
  }
  return texts;
}

std::vector<std::string> Joined(std::vector<std::string> line,
                                const std::vector<std::string>& texts,
                                const std::vector<std::string>& end) {
  line.insert(line.end(), texts.begin(), texts.end());
  line.insert(line.end(), end.begin(), end.end());
  return line;
}

EvaluationTable AsPrinted(const std::vector<PaperCell>& cells,
                          const Table& table, const Document& paper) {
  // Table 1 groups its rows by budget.
  const std::string budget = "paper.expert_budget";
  const bool grouped =
      !golden::FieldValue(paper, table.rows.front(), budget).empty();
  EvaluationTable out;
  out.title = table.title;
  out.caption = table.caption;
  std::vector<std::string> headings;
  for (const Column& column : table.columns) {
    headings.push_back(Heading(column.id));
  }
  std::vector<std::string> end = {"seeds", "verdict"};
  if (grouped) end.insert(end.begin(), "#Expert");
  out.header = Joined({"model", ""}, headings, end);
  bool any_bold = false;
  for (const Row& row : table.rows) {
    const Readings readings = ReadingsOf(cells, table, row);
    if (readings.empty()) continue;
    const auto printed = [&](const PaperCell& cell) {
      const auto c = static_cast<size_t>(table.FindColumn(cell.column));
      any_bold |= row.cells[c].bold;
      return cell.paper + (row.cells[c].bold ? "*" : "");
    };
    end = {"", ""};
    if (grouped) {
      end.insert(end.begin(), golden::FieldValue(paper, row, budget));
    }
    out.rows.push_back(Joined({Label(table, row), "paper"},
                              Texts(table, readings.front().second, printed),
                              end));
    for (const auto& [variant, ours] : readings) {
      int64_t runs = 0;
      for (const PaperCell* cell : ours) runs = std::max(runs, cell->runs);
      end = {runs == 0 ? "" : std::to_string(runs), Summary(ours)};
      if (grouped) end.insert(end.begin(), "");
      out.rows.push_back(Joined(
          {"", variant.empty() ? "here" : "here, tau " + variant},
          Texts(table, ours, [](const PaperCell& c) { return c.ours; }), end));
    }
  }
  return out;
}

void AddReading(const std::string& accuracies, EvaluationTable* table) {
  if (!accuracies.empty()) table->title += " (accuracies: " + accuracies + ")";
}

}  // namespace

std::vector<EvaluationTable> PaperTables(const Grid& grid,
                                         const std::vector<PaperCell>& cells,
                                         const Document& paper,
                                         const std::string& accuracies) {
  std::vector<EvaluationTable> tables;
  for (const std::string& id : Repeated(grid)) {
    const Table& table = *paper.FindTable(id);
    tables.push_back(AsPrinted(cells, table, paper));
    // Each of the paper's tables has all of the accuracies or none.
    if (table.FindColumn("piqa") >= 0) AddReading(accuracies, &tables.back());
  }
  return tables;
}

EvaluationTable CellTable(const std::vector<PaperCell>& cells,
                          const std::string& accuracies) {
  EvaluationTable table;
  table.title = "Every cell";
  AddReading(accuracies, &table);
  table.caption =
      "N..: notes on the paper's number, shown by //:golden -- show --notes.";
  table.header = {"table", "row",  "column",  "tau",    "paper",
                  "here",  "runs", "verdict", "reason", "notes"};
  for (const PaperCell& cell : cells) {
    table.rows.push_back(
        {cell.table, cell.row, cell.column, cell.variant, cell.paper, cell.ours,
         cell.runs == 0 ? "" : std::to_string(cell.runs), cell.verdict,
         cell.reason, fmt::format("{}", fmt::join(cell.notes, " "))});
  }
  return table;
}

}  // namespace softmoe::experiments
