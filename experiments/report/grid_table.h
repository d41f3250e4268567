// SPDX-License-Identifier: Apache-2.0
//
// grid_table.h - what a grid measured, in the shape of the paper's Table 1.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_GRID_TABLE_H_
#define SOFTMOE_EXPERIMENTS_REPORT_GRID_TABLE_H_

#include <string>
#include <vector>

#include "experiments/report/row_summary.h"
#include "experiments/report/run_columns.h"
#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

// A table of texts, for terminal and HTML.
struct GridTable {
  struct Row {
    std::string corpus;              // its id
    std::vector<std::string> cells;  // as many as the header has
    std::string problem;             // "FAILED", "not finished"; else ""
  };
  // Settings, then the columns of run_columns.h that some row has, then seeds,
  // and problems if there are any.
  std::vector<std::string> header;
  // Ordered by corpus, expert budget and the grid's order, grouped as in the
  // paper.
  std::vector<Row> rows;
  std::string legend;  // describes the columns
};

GridTable MakeGridTable(const GridOutcome& outcome);

// The table for a terminal of 100 columns, with a legend.
std::string DescribeGridTable(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_GRID_TABLE_H_
