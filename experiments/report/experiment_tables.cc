// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/experiment_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "experiments/plan/grid_estimate.h"
#include "experiments/report/row_summary.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::RunResult;
namespace metrics = trainer::metrics;

std::string Name(const RowSummary& row) {
  return row.corpus->id + "/" + row.row->id;
}

// The time of all steps, without validation, calibration and checkpoints.
double StepSeconds(const RunResult& r) {
  double seconds = 0;
  for (const trainer::StepRecord& step : r.steps) seconds += step.seconds;
  return seconds;
}

double MillisecondsAStep(const RunResult& r) {
  return 1e3 * StepSeconds(r) / static_cast<double>(r.steps.size());
}

double TokensASecond(const RunResult& r) {
  const double tokens =
      static_cast<double>(r.config.training.global_batch_sequences *
                          r.config.model.sequence_length);
  return 1e3 * tokens / MillisecondsAStep(r);
}

EvaluationTable Times(const std::vector<RowSummary>& rows,
                      const golden::Document& paper) {
  EvaluationTable table;
  table.title = "Time";
  table.caption =
      "By the clock of the machine, so only worth what else ran there: hours "
      "of all sessions; ms and tokens of the steps alone. paper: GPU hours of "
      "its own run, milliseconds of its steps, tokens per second and GPU.";
  table.header = {"row",         "runs",     metrics::kTrainAe.title,
                  "hours",       "ms/step",  "tokens/s",
                  "paper GPU h", "paper ms", "paper tok/s"};
  for (const RowSummary& row : rows) {
    const Sample hours =
        row.Over([](const RunResult& r) { return r.seconds / 3600; });
    if (hours.runs == 0) continue;
    const auto printed = [&](const char* id, const char* column, int decimals) {
      std::optional<double> number;
      if (!row.corpus->paper_dataset.empty()) {
        number = PaperNumber(paper, id, row.paper_id(), column);
      }
      return number ? fmt::format("{:.{}f}", *number, decimals) : "-";
    };
    table.rows.push_back(
        {Name(row), fmt::format("{}/{}", hours.runs, row.runs.size()),
         Shown(metrics::kTrainAe,
               row.Over([](const RunResult& r) { return r.train_ae; }).mean),
         fmt::format("{:.3f}", hours.mean),
         fmt::format("{:.1f}", row.Over(MillisecondsAStep).mean),
         fmt::format("{:.0f}", row.Over(TokensASecond).mean),
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
  for (const RowSummary& row : rows) {
    for (const RunOutcome* run : row.Finished()) {
      for (const auto& layer : run->result->final_validation.active_histogram) {
        for (size_t n = 0; n < layer.size(); ++n) {
          if (layer[n] > 0) most = std::max(most, n);
        }
      }
    }
  }
  table.header = {"row", "layer"};
  for (size_t n = 0; n <= most; ++n) table.header.push_back(std::to_string(n));
  for (const RowSummary& row : rows) {
    if (row.Finished().empty()) continue;
    const auto layers = static_cast<size_t>(row.config().model.num_layers);
    for (size_t l = 0; l < layers; ++l) {
      std::vector<std::string> line = {Name(row), std::to_string(l + 1)};
      for (size_t n = 0; n <= most; ++n) {
        const Sample share = row.Over([&](const RunResult& r) {
          const auto& histogram = r.final_validation.active_histogram[l];
          const int64_t count = n < histogram.size() ? histogram[n] : 0;
          return 100 * static_cast<double>(count) /
                 static_cast<double>(r.final_validation.num_tokens);
        });
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
  const std::vector<RowSummary> rows = SummarizeRows(outcome);
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

}  // namespace softmoe::experiments
