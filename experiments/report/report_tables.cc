// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/run_columns.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::Metric;
using trainer::RouterHealth;
using trainer::RunResult;
namespace metrics = trainer::metrics;

}  // namespace

// ---- The table of the grid.

namespace {

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

bool AsksTasks(const RowSummary& row) {
  return std::ranges::any_of(row.Finished(), [](const RunOutcome* run) {
    return !TasksOf(*run->result).empty();
  });
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
  const std::vector<RowSummary> summaries = JudgedRows(outcome);
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
  table.legend += PilotsLeftOut(summaries, outcome);
  if (seeds) table.header.push_back("seeds");
  if (problems) table.header.push_back("");
  if (std::ranges::none_of(summaries, AsksTasks)) {
    table.legend += "Zero-shot tasks are not measured.";
  }

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
                     {row.corpus->id, std::move(cells)}});
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

// ---- Measurements on final parameters.

namespace {

bool HasHealth(const RunResult& result) {
  return result.final_evaluations &&
         !result.final_evaluations->router_health.empty();
}

// The row with only those finished seeds that satisfy `has`.
RowSummary Restricted(const RowSummary& row,
                      const std::function<bool(const RunResult&)>& has) {
  RowSummary some = row;
  some.runs = row.Finished();
  std::erase_if(some.runs,
                [&](const RunOutcome* run) { return !has(*run->result); });
  return some;
}

std::string Label(const RowSummary& row) {
  return fmt::format("{}/{}", row.corpus->id, row.row->id);
}

std::string Runs(const RowSummary& some, const RowSummary& row) {
  return fmt::format("{}/{}", some.runs.size(), row.runs.size());
}

EvaluationTable InferenceTauTable(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Inference with another tau";
  table.caption = fmt::format(
      "Final parameters, held-out text, T = 1, noise off; means "
      "over seeds, sd: their deviation. {}. {}. {}. {}. {}. The "
      "sparse router has no tau.",
      Legend(metrics::kTauFactor), Legend(metrics::kActiveExperts),
      Legend(metrics::kLoss), Legend(metrics::kZeroActiveFraction),
      Legend(metrics::kRelativeLoadVariance));
  table.header = {"row",
                  metrics::kTauFactor.title,
                  metrics::kTau.title,
                  metrics::kActiveExperts.title,
                  metrics::kLoss.title,
                  "sd",
                  metrics::kZeroActiveFraction.title,
                  metrics::kRelativeLoadVariance.title,
                  "runs"};
  for (const RowSummary& row : rows) {
    std::set<double> factors;
    for (const RunOutcome* run : row.Finished()) {
      if (!run->result->final_evaluations) continue;
      for (const auto& at : run->result->final_evaluations->inference_tau) {
        factors.insert(at.factor);
      }
    }
    for (const double factor : factors) {
      const RowSummary some = Restricted(row, [&](const RunResult& r) {
        return AtFactor(r, factor) != nullptr;
      });
      const auto over = [&](double trainer::Validation::*member) {
        return some.Over([&](const RunResult& r) {
          return AtFactor(r, factor)->validation.*member;
        });
      };
      const auto cell = [&](const Metric& metric,
                            double trainer::Validation::*member) {
        return Shown(metric, over(member).mean);
      };
      const Sample tau = some.Over(
          [&](const RunResult& r) { return AtFactor(r, factor)->tau; });
      const Sample loss = over(&trainer::Validation::loss);
      table.rows.push_back(
          {Label(row), Shown(metrics::kTauFactor, factor),
           Shown(metrics::kTau, tau.mean),
           cell(metrics::kActiveExperts, &trainer::Validation::active_experts),
           Shown(metrics::kLoss, loss.mean),
           loss.deviation ? Shown(metrics::kLoss, *loss.deviation) : "",
           cell(metrics::kZeroActiveFraction,
                &trainer::Validation::zero_active_fraction),
           cell(metrics::kRelativeLoadVariance,
                &trainer::Validation::relative_load_variance),
           Runs(some, row)});
    }
  }
  return table;
}

// The mean of a number over the layers of a run.
double MeanOverLayers(const RunResult& result, double RouterHealth::*member) {
  const auto& layers = result.final_evaluations->router_health;
  double sum = 0;
  for (const RouterHealth& layer : layers) sum += layer.*member;
  return sum / static_cast<double>(layers.size());
}

double LeastEntropy(const RunResult& result) {
  double least = 1;
  for (const auto& layer : result.final_evaluations->router_health) {
    least = std::min(least, layer.relative_load_entropy);
  }
  return least;
}

double DeadExperts(const RunResult& result) {
  int64_t dead = 0;
  for (const auto& layer : result.final_evaluations->router_health) {
    dead += layer.dead_experts;
  }
  return static_cast<double>(dead);
}

double TruncatedMass(const RunResult& result) {
  const auto& layers = result.final_evaluations->router_health;
  double sum = 0;
  for (const RouterHealth& layer : layers) sum += layer.truncated_mass.value();
  return sum / static_cast<double>(layers.size());
}

EvaluationTable RouterHealthTable(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Router health";
  table.caption = fmt::format(
      "Final parameters, held-out text, tau of training, T = 1, noise off; "
      "means over layers. {}; least: of the worst layer. {}; in all layers, of "
      "the number given. {}. {}. {}.",
      Legend(metrics::kRelativeLoadEntropy), Legend(metrics::kDeadExperts),
      Legend(metrics::kAtCapFraction),
      Legend(metrics::kLayerZeroActiveFraction),
      Legend(metrics::kTruncatedMass));
  table.header = {"row",
                  metrics::kRelativeLoadEntropy.title,
                  "least",
                  metrics::kDeadExperts.title,
                  "of",
                  metrics::kAtCapFraction.title,
                  metrics::kLayerZeroActiveFraction.title,
                  metrics::kTruncatedMass.title,
                  "runs"};
  for (const RowSummary& row : rows) {
    const RowSummary some = Restricted(row, HasHealth);
    if (some.runs.empty()) continue;
    const auto cell = [&](const Metric& metric, double RouterHealth::*member) {
      const auto over_layers = [&](const RunResult& r) {
        return MeanOverLayers(r, member);
      };
      return Shown(metric, some.Over(over_layers).mean);
    };
    const ModelConfig& model = row.config().model;
    table.rows.push_back(
        {Label(row),
         cell(metrics::kRelativeLoadEntropy,
              &RouterHealth::relative_load_entropy),
         Shown(metrics::kRelativeLoadEntropy, some.Over(LeastEntropy).mean),
         Shown(metrics::kDeadExperts, some.Over(DeadExperts).mean),
         std::to_string(model.num_layers * model.num_experts),
         cell(metrics::kAtCapFraction, &RouterHealth::at_cap_fraction),
         cell(metrics::kLayerZeroActiveFraction,
              &RouterHealth::zero_active_fraction),
         TraitsOf(row.config()).lapsum
             ? Shown(metrics::kTruncatedMass, some.Over(TruncatedMass).mean)
             : "",
         Runs(some, row)});
  }
  return table;
}

// For each set of items of a task that runs of a row were given, the first
// answers.
std::vector<const trainer::TaskResult*> SetsOfItems(const RowSummary& row,
                                                    const std::string& task) {
  std::vector<const trainer::TaskResult*> sets;
  for (const RunOutcome* run : row.Finished()) {
    const trainer::TaskResult* const answers = FindTask(*run->result, task);
    if (answers != nullptr && std::ranges::none_of(sets, [&](const auto* set) {
          return SameItems(*set, *answers);
        })) {
      sets.push_back(answers);
    }
  }
  return sets;
}

// The line of those runs of a row that were given the same items as `asked`.
std::vector<std::string> TaskLine(const RowSummary& row,
                                  const trainer::TaskResult& asked) {
  using trainer::MeasuredAnswers;
  const std::string& task = asked.name;
  const RowSummary some = Restricted(row, [&](const RunResult& r) {
    const trainer::TaskResult* const answers = FindTask(r, task);
    return answers != nullptr && SameItems(*answers, asked);
  });
  const auto over = [&](size_t m, double MeasuredAnswers::*of) {
    return some.Over([&](const RunResult& r) {
      return 100 * (FindTask(r, task)->measures[m].*of);
    });
  };
  std::vector<std::string> line = {Label(row), task,
                                   std::to_string(asked.right.size())};
  for (size_t m = 0; m < trainer::kTaskMeasureNames.size(); ++m) {
    line.push_back(
        fmt::format("{:.2f}", over(m, &MeasuredAnswers::accuracy).mean));
  }
  const Sample acc = over(0, &MeasuredAnswers::accuracy);
  line.push_back(acc.deviation ? fmt::format("{:.2f}", *acc.deviation) : "");
  line.push_back(
      fmt::format("{:.2f}", over(0, &MeasuredAnswers::standard_error).mean));
  line.push_back(Runs(some, row));
  return line;
}

EvaluationTable TaskTable(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Zero-shot tasks";
  table.caption =
      "Final parameters, T = 1, noise off, tau of training; percent of the "
      "items, means over the seeds that were asked the same items. acc: by "
      "log-likelihood; acc_norm, acc_bytes and acc_tokens: over the choice's "
      "code points, bytes and tokens. sd: deviation of acc over seeds; se: "
      "its mean standard error over items.";
  table.header = {"row", "task", "items"};
  table.header.insert(table.header.end(), trainer::kTaskMeasureNames.begin(),
                      trainer::kTaskMeasureNames.end());
  for (const char* last : {"sd", "se", "runs"}) table.header.push_back(last);
  std::vector<std::string> tasks;  // in the order of the runs
  for (const RowSummary& row : rows) AddTaskNames(row, &tasks);
  for (const RowSummary& row : rows) {
    for (const std::string& name : tasks) {
      for (const trainer::TaskResult* asked : SetsOfItems(row, name)) {
        table.rows.push_back(TaskLine(row, *asked));
      }
    }
  }
  return table;
}

}  // namespace

std::vector<EvaluationTable> EvaluationTables(const GridOutcome& outcome) {
  const std::vector<RowSummary> rows = JudgedRows(outcome);
  std::vector<EvaluationTable> tables = {
      InferenceTauTable(rows), RouterHealthTable(rows), TaskTable(rows)};
  std::erase_if(
      tables, [](const EvaluationTable& table) { return table.rows.empty(); });
  return tables;
}

// ---- Tables of an experiment.

double HoursOf(const RunResult& result) { return result.seconds / 3600; }

double MillisecondsAStep(const RunResult& result) {
  if (result.steps.empty()) return std::nan("");
  return 1e3 * MeanOverSteps(result, &trainer::StepRecord::seconds, 0,
                             result.steps.back().step);
}

namespace {

double TokensOfAStep(const Config& config) {
  return static_cast<double>(config.training.global_batch_sequences *
                             config.model.sequence_length);
}

}  // namespace

double TokensASecond(const RunResult& result) {
  return 1e3 * TokensOfAStep(result.config) / MillisecondsAStep(result);
}

namespace {

EvaluationTable Times(const std::vector<RowSummary>& rows,
                      const golden::Document& paper) {
  EvaluationTable table;
  table.title = "Time";
  table.caption =
      "Wall-clock times, which depend on what else ran on the machine: hours "
      "of all sessions; ms of the steps alone (of a recorded run, of the "
      "steps it has, each weighted by those it stands for); tokens/s at that "
      "ms/step. paper: GPU hours of its own run, milliseconds of its steps, "
      "tokens per second and GPU.";
  table.header = {"row",         "runs",     metrics::kTrainAe.title,
                  "hours",       "ms/step",  "tokens/s",
                  "paper GPU h", "paper ms", "paper tok/s"};
  for (const RowSummary& row : rows) {
    const Sample hours = row.Over(HoursOf);
    if (hours.runs == 0) continue;
    const double milliseconds = row.Over(MillisecondsAStep).mean;
    const auto printed = [&](const char* id, const char* column, int decimals) {
      std::optional<double> number;
      if (!row.corpus->paper_dataset.empty()) {
        number = PaperNumber(paper, id, row.paper_id(), column);
      }
      return number ? fmt::format("{:.{}f}", *number, decimals) : "-";
    };
    table.rows.push_back(
        {Label(row), fmt::format("{}/{}", hours.runs, row.runs.size()),
         Shown(metrics::kTrainAe,
               row.Over([](const RunResult& r) { return r.train_ae; }).mean),
         fmt::format("{:.3f}", hours.mean), fmt::format("{:.1f}", milliseconds),
         fmt::format("{:.0f}",
                     1e3 * TokensOfAStep(row.config()) / milliseconds),
         printed("compute", "gpu_hours", 1),
         printed("throughput", "iteration_time", 2),
         printed("throughput", "throughput", 0)});
  }
  return table;
}

EvaluationTable ActiveExperts(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Active experts in every layer";
  table.caption =
      "Percent of the validation tokens with each number of active experts; "
      "final parameters, T = 1, noise off.";
  size_t most = 0;
  for (const RowSummary& row : rows) most = std::max(most, MostActive(row));
  table.header = {"row", "layer"};
  for (size_t n = 0; n <= most; ++n) table.header.push_back(std::to_string(n));
  for (const RowSummary& row : rows) {
    if (row.Finished().empty()) continue;
    const auto layers = static_cast<size_t>(row.config().model.num_layers);
    for (size_t l = 0; l < layers; ++l) {
      std::vector<std::string> line = {Label(row), std::to_string(l + 1)};
      for (size_t n = 0; n <= most; ++n) {
        const Sample share = row.Over(
            [&](const RunResult& r) { return PercentActive(r, l, n); });
        line.push_back(fmt::format("{:.1f}", share.mean));
      }
      table.rows.push_back(std::move(line));
    }
  }
  return table;
}

}  // namespace

std::vector<EvaluationTable> ExperimentTables(const GridOutcome& outcome,
                                              const golden::Document& paper) {
  const std::vector<RowSummary> rows = JudgedRows(outcome);
  std::vector<EvaluationTable> tables;
  const std::string& repeats = outcome.grid.table;
  if (repeats == "compute" || repeats == "throughput") {
    tables.push_back(Times(rows, paper));
  } else if (repeats == "allocation") {
    tables.push_back(ActiveExperts(rows));
  }
  std::erase_if(
      tables, [](const EvaluationTable& table) { return table.rows.empty(); });
  return tables;
}

std::string DescribeTables(const std::vector<EvaluationTable>& tables) {
  std::string text;
  for (const EvaluationTable& table : tables) {
    TextTable lines(table.header);
    for (const auto& row : table.rows) lines.Add(row);
    text += table.title + "\n" + lines.Text() + "\n" +
            Wrap(table.caption, kReportWidth, 0) + "\n\n";
  }
  return text;
}

}  // namespace softmoe::experiments
