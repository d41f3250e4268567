// SPDX-License-Identifier: Apache-2.0
//
// results_measures.h - maps the numbers of a run to the columns of the results.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RESULTS_MEASURES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RESULTS_MEASURES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "golden/document/document.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// One column of a results table and the source of its numbers.
struct Measure {
  std::string column;  // its id; the golden's, unless `own` is set
  // nullptr: not measured. NaN: this run lacks it.
  std::function<double(const trainer::RunResult&)> read;
  bool setting = false;  // a setting, not a measurement
  // Rows to which the column does not apply have empty cells.
  std::function<bool(const Config&)> applies = {};  // nullptr: all rows
  std::optional<golden::Column> own = {};  // a column that the golden lacks
};

// The model of the paper, whose Active-Param column is 58.54464 + 49.2 AE
// (ruling 17); for other sizes that formula is meaningless.
bool HasPaperSizes(const ModelConfig& model);

// The paper's Table 1. paper_sizes: all rows have the paper's sizes.
std::vector<Measure> MainMeasures(bool paper_sizes);

// Relative variance of the expert load, with k and alpha.
std::vector<Measure> LoadVarianceMeasures();

// The paper's Table 6, tau in training, and Table 8, input jitter.
std::vector<Measure> TauMeasures();
std::vector<Measure> JitterMeasures();

// The paper's Table 7: validation with `factor` times the tau of training.
std::vector<Measure> InferenceTauMeasures(double factor);

// The paper's statements about the learned allocation.
std::vector<Measure> AllocationMeasures();

// "layer_1", ...: k_l of every layer at the end of training.
std::vector<Measure> LayerMeasures(int64_t num_layers);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RESULTS_MEASURES_H_
