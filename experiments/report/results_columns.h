// SPDX-License-Identifier: Apache-2.0
//
// results_columns.h - the columns of the paper's tables that a grid repeats,
// and what each measures in a run.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RESULTS_COLUMNS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RESULTS_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "golden/document/document.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// What we take a column of the paper's accuracies for, since the paper does not
// say which of lm-evaluation-harness's numbers it holds.
struct AccuracyColumn {
  const char* id;
  const char* split;    // the task of [evaluations] that measures it
  const char* answers;  // the TaskResult, over as many items as the paper's
  size_t items;
  const char* metric;  // after the name of a trainer::TaskMeasure and " of "
};
std::span<const AccuracyColumn> AccuracyColumns();

// One column of a results table and the source of its numbers.
struct ResultsColumn {
  std::string column;  // its id; the golden's, unless `own` is set
  // nullptr: not measured. NaN: this run lacks it.
  std::function<double(const trainer::RunResult&)> read;
  bool setting = false;  // a setting, not a measurement
  // Rows to which the column does not apply have empty cells.
  std::function<bool(const Config&)> applies = {};  // nullptr: all rows
  std::optional<golden::Column> own = {};  // a column that the golden lacks
  // For an accuracy, which is measured where a grid asks for its task.
  // `answers` returns nullptr if this run lacks them.
  const AccuracyColumn* accuracy = nullptr;
  trainer::TaskMeasure by = trainer::TaskMeasure::kAcc;
  std::function<const trainer::TaskResult*(const trainer::RunResult&)> answers =
      {};
  // Fixed by k where every token has exactly k experts.
  bool by_k = false;
};

// The paper's Table 1. paper_sizes: all rows have the paper's sizes.
std::vector<ResultsColumn> MainColumns(bool paper_sizes,
                                       trainer::TaskMeasure by);

// Relative variance of the expert load, with k and alpha.
std::vector<ResultsColumn> LoadVarianceColumns();

// The paper's Table 6, tau in training.
std::vector<ResultsColumn> TauColumns(trainer::TaskMeasure by);

// The paper's Table 8, input jitter.
std::vector<ResultsColumn> JitterColumns(trainer::TaskMeasure by);

// The paper's Table 7: validation with `factor` times the tau of training.
std::vector<ResultsColumn> InferenceTauColumns(double factor,
                                               trainer::TaskMeasure by);

// The paper's statements about the learned allocation.
std::vector<ResultsColumn> AllocationColumns();

// "layer_1", ...: k_l of every layer at the end of training.
std::vector<ResultsColumn> LayerColumns(int64_t num_layers);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RESULTS_COLUMNS_H_
