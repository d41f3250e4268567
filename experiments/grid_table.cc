// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/cost_model.h"
#include "golden/text_table.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;

std::string Fixed(const Sample& sample, int decimals, double scale = 1) {
  return fmt::format("{:.{}f}", sample.mean * scale, decimals);
}

std::string Tau(const RowSummary& row) {
  const RouterConfig& router = row.config().router;
  if (router.kind == RouterKind::kSparse) return "-";
  if (router.tau) return Setting(*router.tau);
  const Sample tau = row.Over([](const RunResult& r) { return r.tau; });
  return tau.runs == 0 ? "calibrated" : Fixed(tau, 3) + " c";
}

GridTableRow MakeRow(const RowSummary& row) {
  const Config& config = row.config();
  const bool sparse = config.router.kind == RouterKind::kSparse;
  GridTableRow out;
  out.corpus = row.corpus->id;
  out.label = row.row->label;
  if (!row.row->variant.empty()) out.label += " (" + row.row->variant + ")";
  out.k = Setting(config.router.mean_active_experts);
  out.alpha = sparse ? "-" : Setting(config.router.expansion_factor);
  out.tau = Tau(row);
  const Sample loss =
      row.Over([](const RunResult& r) { return r.final_validation.loss; });
  out.runs = fmt::format("{}/{}", loss.runs, row.runs.size());
  if (loss.runs < static_cast<int64_t>(row.runs.size())) {
    out.problem = row.AnyFailed() ? "FAILED" : "not finished";
  }
  if (loss.runs == 0) return out;
  const int64_t budget = ExpertBudget(row);
  out.budget = fmt::format("{} {}", budget == 1 ? "=" : "<=", budget);
  out.loss = Fixed(loss, 4);
  if (loss.deviation) out.deviation = fmt::format("{:.4f}", *loss.deviation);
  out.unigram =
      Fixed(row.Over([](const RunResult& r) { return r.unigram_loss; }), 4);
  out.train_experts =
      Fixed(row.Over([](const RunResult& r) { return r.train_ae; }), 2);
  const Sample infer = row.Over(
      [](const RunResult& r) { return r.final_validation.active_experts; });
  out.infer_experts = Fixed(infer, 2);
  out.active_parameters =
      fmt::format("{:.3f}", ActiveParameters(config.model, infer.mean) / 1e6);
  out.without = Fixed(row.Over([](const RunResult& r) {
    return r.final_validation.zero_active_fraction;
  }),
                      1, 100);
  return out;
}

}  // namespace

std::vector<GridTableRow> MakeGridTable(const GridOutcome& outcome) {
  struct Keyed {
    size_t corpus;
    int64_t budget;
    GridTableRow row;
  };
  std::vector<Keyed> keyed;
  std::map<std::string, size_t> corpora;
  for (const RowSummary& row : SummarizeRows(outcome)) {
    const size_t corpus =
        corpora.emplace(row.corpus->id, corpora.size()).first->second;
    const int64_t budget = ExpertBudget(row);
    // What is not finished comes last.
    keyed.push_back({corpus, budget == 0 ? INT64_MAX : budget, MakeRow(row)});
  }
  std::stable_sort(
      keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
        return std::pair(a.corpus, a.budget) < std::pair(b.corpus, b.budget);
      });
  std::vector<GridTableRow> rows;
  for (Keyed& entry : keyed) rows.push_back(std::move(entry.row));
  return rows;
}

std::string DescribeGridTable(const GridOutcome& outcome) {
  const std::vector<GridTableRow> rows = MakeGridTable(outcome);
  const bool deviations =
      std::any_of(rows.begin(), rows.end(),
                  [](const GridTableRow& r) { return !r.deviation.empty(); });
  const bool problems =
      std::any_of(rows.begin(), rows.end(),
                  [](const GridTableRow& r) { return !r.problem.empty(); });
  const bool seeds = outcome.grid.seeds.size() > 1;
  std::string text;
  size_t begin = 0;
  while (begin < rows.size()) {
    const std::string& corpus = rows[begin].corpus;
    for (const GridCorpus& c : outcome.grid.corpora) {
      if (c.id == corpus) text += c.title + "\n";
    }
    std::vector<std::string> header = {"experts",  "model",         "k",
                                       "alpha",    "tau",           "train AE",
                                       "infer AE", "active params", "loss"};
    if (deviations) header.push_back("sd");
    header.insert(header.end(), {"unigram", "none %"});
    if (seeds) header.push_back("seeds");
    if (problems) header.push_back("");
    golden::TextTable table(header);
    std::string budget;
    for (; begin < rows.size() && rows[begin].corpus == corpus; ++begin) {
      const GridTableRow& r = rows[begin];
      std::vector<std::string> cells = {
          r.budget == budget ? "" : r.budget,
          r.label,
          r.k,
          r.alpha,
          r.tau,
          r.train_experts,
          r.infer_experts,
          r.active_parameters.empty() ? "" : r.active_parameters + " M",
          r.loss};
      if (deviations) cells.push_back(r.deviation);
      cells.insert(cells.end(), {r.unigram, r.without});
      if (seeds) cells.push_back(r.runs);
      if (problems) cells.push_back(r.problem);
      table.Add(cells);
      budget = r.budget;
    }
    text += table.Text() + "\n";
  }
  return text +
         "AE: active experts per token and layer. loss, unigram: held-out "
         "nat/token, T = 1, noise\noff. tau c: calibrated. none: tokens "
         "without an expert. Zero-shot tasks are not measured.\n";
}

}  // namespace softmoe::experiments
