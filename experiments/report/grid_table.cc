// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/grid_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"

namespace softmoe::experiments {
namespace {

namespace metrics = trainer::metrics;

std::string Tau(const RowSummary& row) {
  const RouterConfig& router = row.config().router;
  if (!TraitsOf(row.config()).cutoff) return "-";
  if (router.tau) return Setting(*router.tau);
  const Sample tau = row.Over(ColumnOf(metrics::kTau).read);
  return tau.runs == 0 ? "calibrated"
                       : trainer::Shown(metrics::kTau, tau.mean) + " c";
}

bool Measured(const Sample& sample) {
  return sample.runs > 0 && !std::isnan(sample.mean);
}

// A measured column; only one has room for its deviation over seeds.
struct MeasuredColumn {
  const RunColumn& column;
  bool with_deviation = false;
};

std::vector<MeasuredColumn> MeasuredColumns(
    const std::vector<RowSummary>& rows) {
  std::vector<MeasuredColumn> columns;
  for (const RunColumn& column : RunColumns()) {
    if (!column.in_table) continue;
    bool measured = false, deviates = false;
    for (const RowSummary& row : rows) {
      const Sample sample = row.Over(column.read);
      measured |= Measured(sample);
      deviates |= sample.deviation.has_value();
    }
    if (!measured) continue;
    const bool is_loss = &column == &ColumnOf(metrics::kValLoss);
    columns.push_back({column, is_loss && deviates});
  }
  return columns;
}

std::string Problem(const RowSummary& row) {
  if (row.Finished().size() == row.runs.size()) return "";
  return row.AnyFailed() ? "FAILED" : "not finished";
}

std::string BudgetText(int64_t budget) {
  if (budget == 0) return "";
  return fmt::format("{} {}", budget == 1 ? "=" : "<=", budget);
}

std::vector<std::string> MakeCells(const RowSummary& row,
                                   const std::vector<MeasuredColumn>& columns) {
  const RouterConfig& router = row.config().router;
  std::string label = row.row->label;
  if (!row.row->variant.empty()) label += " (" + row.row->variant + ")";
  std::vector<std::string> cells = {
      BudgetText(ExpertBudget(row)), label, Setting(router.mean_active_experts),
      TraitsOf(row.config()).cap ? Setting(router.expansion_factor) : "-",
      Tau(row)};
  for (const auto& [column, with_deviation] : columns) {
    const Sample sample = row.Over(column.read);
    cells.push_back(
        Measured(sample) ? trainer::Shown(column.metric, sample.mean) : "");
    if (!with_deviation) continue;
    cells.push_back(sample.deviation
                        ? trainer::Shown(column.metric, *sample.deviation)
                        : "");
  }
  return cells;
}

}  // namespace

GridTable MakeGridTable(const GridOutcome& outcome) {
  const std::vector<RowSummary> summaries = SummarizeRows(outcome);
  const std::vector<MeasuredColumn> columns = MeasuredColumns(summaries);
  const bool seeds = outcome.grid.seeds.size() > 1;
  const bool problems = std::ranges::any_of(
      summaries, [](const RowSummary& row) { return !Problem(row).empty(); });

  GridTable table;
  table.header = {"experts", "model", "k", "alpha", "tau"};
  table.legend =
      "experts: the budget, as the paper groups its Table 1. tau c: "
      "calibrated. ";
  for (const auto& [column, with_deviation] : columns) {
    table.header.push_back(column.metric.title);
    if (with_deviation) table.header.push_back("sd");
    table.legend += Legend(column.metric) + ". ";
  }
  if (seeds) table.header.push_back("seeds");
  if (problems) table.header.push_back("");
  table.legend += "Zero-shot tasks are not measured.";

  struct Keyed {
    size_t corpus;
    int64_t budget;
    GridTable::Row row;
  };
  std::vector<Keyed> keyed;
  std::map<std::string, size_t> corpora;
  for (const RowSummary& row : summaries) {
    const size_t corpus =
        corpora.emplace(row.corpus->id, corpora.size()).first->second;
    const int64_t budget = ExpertBudget(row);
    std::vector<std::string> cells = MakeCells(row, columns);
    if (seeds) {
      cells.push_back(
          fmt::format("{}/{}", row.Finished().size(), row.runs.size()));
    }
    if (problems) cells.push_back(Problem(row));
    // Unfinished rows come last.
    keyed.push_back({corpus,
                     budget == 0 ? INT64_MAX : budget,
                     {row.corpus->id, std::move(cells), Problem(row)}});
  }
  std::stable_sort(
      keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
        return std::pair(a.corpus, a.budget) < std::pair(b.corpus, b.budget);
      });
  for (Keyed& entry : keyed) table.rows.push_back(std::move(entry.row));
  return table;
}

std::string DescribeGridTable(const GridOutcome& outcome) {
  const GridTable table = MakeGridTable(outcome);
  std::string text;
  auto row = table.rows.begin();
  while (row != table.rows.end()) {
    const std::string corpus = row->corpus;
    for (const GridCorpus& c : outcome.grid.corpora) {
      if (c.id == corpus) text += c.title + "\n";
    }
    TextTable lines(table.header);
    std::string budget;
    for (; row != table.rows.end() && row->corpus == corpus; ++row) {
      std::vector<std::string> cells = row->cells;
      // Rows that share a budget show it only once.
      if (cells[0] == budget) cells[0] = "";
      budget = row->cells[0];
      lines.Add(cells);
    }
    text += lines.Text() + "\n";
  }
  return text + Wrap(table.legend, 100, 0) + "\n";
}

}  // namespace softmoe::experiments
