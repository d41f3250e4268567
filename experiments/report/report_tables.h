// SPDX-License-Identifier: Apache-2.0
//
// report_tables.h - the tables of a grid's report, for terminal and page: what
// the grid measured, in the shape of the paper's Table 1; the measurements on
// final parameters; and what an experiment adds, such as clock times, which no
// result may hold.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_TABLES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_TABLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// The width of a report's sentences on a terminal, in columns.
constexpr size_t kReportWidth = 96;

// A table of texts, for terminal and HTML.
struct GridTable {
  struct Row {
    std::string corpus;              // its id
    std::vector<std::string> cells;  // as many as the header has
  };
  // Settings, then the columns of run_columns.h that some row has, then seeds,
  // and problems ("FAILED", "not finished") if there are any.
  std::vector<std::string> header;
  // Ordered by corpus, expert budget and the grid's order, grouped as in the
  // paper.
  std::vector<Row> rows;
  std::string legend;  // describes the columns
};

GridTable MakeGridTable(const GridOutcome& outcome);

// The table for a terminal of 100 columns, with a legend.
std::string DescribeGridTable(const GridOutcome& outcome);

// A table of texts, for terminal and HTML.
struct EvaluationTable {
  std::string title, caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // at least one
};

// The tables of inference with other tau, of router health and of zero-shot
// tasks for which anything was measured. Rows follow the grid; values are means
// over the finished seeds that have the number.
std::vector<EvaluationTable> EvaluationTables(const GridOutcome& outcome);

// The tables for the paper's table that the experiment repeats (Grid::table);
// none if all of its numbers are in the results, or if nothing is finished.
//
//   compute, throughput   hours, milliseconds a step and tokens a second, with
//                         the paper's own beside them on its own corpora
//   allocation            share of the validation tokens of each layer with 0,
//                         1, 2, ... active experts
//
// Means over the finished seeds; rows are the grid's, in its order.
std::vector<EvaluationTable> ExperimentTables(const GridOutcome& outcome,
                                              const golden::Document& paper);

// By the clock of the machine: hours of all sessions; milliseconds of a step
// without validation, calibration and checkpoints, over the steps that a
// recorded run has (MeanOverSteps); training tokens of all ranks.
double HoursOf(const trainer::RunResult& result);
double MillisecondsAStep(const trainer::RunResult& result);
double TokensASecond(const trainer::RunResult& result);

// Tables for a terminal of 100 columns; "" if there are none.
std::string DescribeTables(const std::vector<EvaluationTable>& tables);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_TABLES_H_
