// SPDX-License-Identifier: Apache-2.0
//
// row_summary.h - the runs of a grid, gathered over their seeds.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_ROW_SUMMARY_H_
#define SOFTMOE_EXPERIMENTS_REPORT_ROW_SUMMARY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// A measured number over the finished seeds of one row.
struct Sample {
  double mean = 0;
  std::optional<double> deviation;  // standard deviation (n - 1), from two runs
  int64_t runs = 0;                 // 0: no measurement
};

// One row on one corpus. Points into the GridOutcome, which must live longer.
struct RowSummary {
  const GridCorpus* corpus = nullptr;
  const GridRow* row = nullptr;
  std::vector<const RunOutcome*> runs;  // its seeds, in the order of the grid

  const Config& config() const { return runs.front()->run.config; }
  std::string paper_id() const { return runs.front()->run.paper_id(); }
  std::vector<const RunOutcome*> Finished() const;
  bool AnyFailed() const;

  // `measure` of every finished run.
  Sample Over(
      const std::function<double(const trainer::RunResult&)>& measure) const;
};

// Corpus by corpus, row by row, in the order of the grid. Unless `variant` is
// "", rows of other variants are left out; rows without one stay.
std::vector<RowSummary> SummarizeRows(const GridOutcome& outcome,
                                      const std::string& variant = "");

// All rows, without the pilots of the experiment `regime`, which are never
// judged; a row that has only pilots keeps them. Throws EnvironmentError if the
// experiment's definitions are missing.
std::vector<RowSummary> JudgedRows(const GridOutcome& outcome);

// "Pilots, which are never judged, are left out. " if `judged`, the outcome's
// JudgedRows, lack some of its runs; else "".
std::string PilotsLeftOut(const std::vector<RowSummary>& judged,
                          const GridOutcome& outcome);

// The largest number of active experts that a histogram counts, or that any
// validation histogram of the row's finished runs counts.
size_t MostActive(const std::vector<int64_t>& histogram);
size_t MostActive(const RowSummary& row);

// The percentage of the validation tokens with `n` active experts in `layer`,
// from 0.
double PercentActive(const trainer::RunResult& result, size_t layer, size_t n);

// The mean of a number of the log over the steps after `after`, up to `last`. A
// recorded run has only some of its steps; each stands for all steps since the
// one recorded before it.
double MeanOverSteps(const trainer::RunResult& result,
                     double trainer::StepRecord::*member, int64_t after,
                     int64_t last);

// Experts per token that a row may use, as the paper groups its tables: its
// mean Infer-AE, rounded up but for rounding errors. At least 1; 0 if nothing
// is finished.
int64_t ExpertBudget(const RowSummary& row);

// The run's validation at this multiple of the trained tau; nullptr if it was
// not measured.
const trainer::InferenceTau* AtFactor(const trainer::RunResult& result,
                                      double factor);

// The tasks that the run was given at this multiple of the trained tau
// (nullopt: at the tau of training); empty if there are none.
const std::vector<trainer::TaskResult>& TasksOf(
    const trainer::RunResult& result, std::optional<double> factor = {});
// The one of these tasks with this name, or nullptr.
const trainer::TaskResult* FindTask(const trainer::RunResult& result,
                                    const std::string& name,
                                    std::optional<double> factor = {});

// Whether both are answers to the same items of a task.
bool SameItems(const trainer::TaskResult& first,
               const trainer::TaskResult& second);

// Appends to `names` those tasks of the row's finished runs that it lacks.
void AddTaskNames(const RowSummary& row, std::vector<std::string>* names);

// "1.5", "2": a setting without trailing zeros.
std::string Setting(double value);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_ROW_SUMMARY_H_
