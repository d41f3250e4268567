// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/row_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/run/run_record.h"
#include "golden/verdict/regime.h"

namespace softmoe::experiments {

std::vector<const RunOutcome*> RowSummary::Finished() const {
  std::vector<const RunOutcome*> finished;
  for (const RunOutcome* run : runs) {
    if (run->state == RunState::kFinished) finished.push_back(run);
  }
  return finished;
}

bool RowSummary::AnyFailed() const {
  return std::any_of(runs.begin(), runs.end(), [](const RunOutcome* run) {
    return run->state == RunState::kFailed;
  });
}

Sample RowSummary::Over(
    const std::function<double(const trainer::RunResult&)>& measure) const {
  Sample sample;
  std::vector<double> values;
  for (const RunOutcome* run : Finished()) {
    values.push_back(measure(*run->result));
  }
  sample.runs = static_cast<int64_t>(values.size());
  if (values.empty()) return sample;
  const double n = static_cast<double>(values.size());
  // Relative to the first value, so the deviation is exactly 0 if all values
  // are equal, which identifies a setting, or a run counted twice.
  const double first = values.front();
  sample.mean = first;
  for (const double value : values) sample.mean += (value - first) / n;
  if (values.size() == 1) return sample;
  double squares = 0;
  for (const double value : values) squares += std::pow(value - sample.mean, 2);
  sample.deviation = std::sqrt(squares / (n - 1));
  return sample;
}

std::vector<RowSummary> SummarizeRows(const GridOutcome& outcome,
                                      const std::string& variant) {
  std::vector<RowSummary> rows;
  for (const RunOutcome& run : outcome.runs) {
    const std::string& own = run.run.row.variant;
    if (!own.empty() && !variant.empty() && own != variant) continue;
    const auto same = [&](const RowSummary& row) {
      return row.corpus->id == run.run.corpus.id &&
             row.row->id == run.run.row.id;
    };
    auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found == rows.end()) {
      rows.push_back({&run.run.corpus, &run.run.row, {}});
      found = rows.end() - 1;
    }
    found->runs.push_back(&run);
  }
  return rows;
}

std::vector<RowSummary> JudgedRows(const GridOutcome& outcome) {
  std::vector<RowSummary> rows = SummarizeRows(outcome);
  if (!IsRegime(outcome.grid)) return rows;
  const golden::RegimeDefinitions regime = golden::LoadRegime();
  for (RowSummary& row : rows) {
    std::vector<const RunOutcome*> judged = row.runs;
    std::erase_if(judged, [&](const RunOutcome* run) {
      return regime.IsPilot(row.row->id, run->run.seed);
    });
    if (!judged.empty()) row.runs = std::move(judged);
  }
  return rows;
}

std::string PilotsLeftOut(const std::vector<RowSummary>& judged,
                          const GridOutcome& outcome) {
  size_t shown = 0;
  for (const RowSummary& row : judged) shown += row.runs.size();
  return shown < outcome.runs.size()
             ? "Pilots, which are never judged, are left out. "
             : "";
}

size_t MostActive(const std::vector<int64_t>& histogram) {
  size_t most = 0;
  for (size_t n = 0; n < histogram.size(); ++n) {
    if (histogram[n] > 0) most = n;
  }
  return most;
}

size_t MostActive(const RowSummary& row) {
  size_t most = 0;
  for (const RunOutcome* run : row.Finished()) {
    for (const auto& layer : run->result->final_validation.active_histogram) {
      most = std::max(most, MostActive(layer));
    }
  }
  return most;
}

double PercentActive(const trainer::RunResult& result, size_t layer, size_t n) {
  const trainer::Validation& validation = result.final_validation;
  const std::vector<int64_t>& histogram = validation.active_histogram[layer];
  const int64_t count = n < histogram.size() ? histogram[n] : 0;
  return 100 * static_cast<double>(count) /
         static_cast<double>(validation.num_tokens);
}

double MeanOverSteps(const trainer::RunResult& result,
                     double trainer::StepRecord::*member, int64_t after,
                     int64_t last) {
  double sum = 0;
  int64_t previous = 0;
  for (const trainer::StepRecord& point : result.steps) {
    const int64_t steps =
        std::min(point.step, last) - std::max(previous, after);
    if (steps > 0) sum += static_cast<double>(steps) * point.*member;
    previous = point.step;
  }
  return sum / static_cast<double>(last - after);
}

int64_t ExpertBudget(const RowSummary& row) {
  const Sample infer = row.Over([](const trainer::RunResult& r) {
    return r.final_validation.active_experts;
  });
  if (infer.runs == 0) return 0;
  // For a router with exactly k experts, means of counts are exact up to the
  // rounding of the division.
  const double experts = infer.mean - 1e-9;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(experts)));
}

const trainer::InferenceTau* AtFactor(const trainer::RunResult& result,
                                      double factor) {
  if (!result.final_evaluations) return nullptr;
  for (const auto& at : result.final_evaluations->inference_tau) {
    if (at.factor == factor) return &at;
  }
  return nullptr;
}

const std::vector<trainer::TaskResult>& TasksOf(
    const trainer::RunResult& result, std::optional<double> factor) {
  static const std::vector<trainer::TaskResult> kNone;
  if (factor) {
    const trainer::InferenceTau* at = AtFactor(result, *factor);
    return at == nullptr ? kNone : at->tasks;
  }
  const auto& evaluations = result.final_evaluations;
  return evaluations ? evaluations->tasks : kNone;
}

const trainer::TaskResult* FindTask(const trainer::RunResult& result,
                                    const std::string& name,
                                    std::optional<double> factor) {
  const auto& tasks = TasksOf(result, factor);
  const auto found = std::ranges::find(tasks, name, &trainer::TaskResult::name);
  return found == tasks.end() ? nullptr : &*found;
}

bool SameItems(const trainer::TaskResult& first,
               const trainer::TaskResult& second) {
  return first.sha256 == second.sha256 &&
         first.right.size() == second.right.size();
}

void AddTaskNames(const RowSummary& row, std::vector<std::string>* names) {
  for (const RunOutcome* run : row.Finished()) {
    for (const trainer::TaskResult& task : TasksOf(*run->result)) {
      if (std::ranges::count(*names, task.name) == 0) {
        names->push_back(task.name);
      }
    }
  }
}

std::string Setting(double value) { return fmt::format("{:g}", value); }

}  // namespace softmoe::experiments
