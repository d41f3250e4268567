// SPDX-License-Identifier: Apache-2.0
//
// run_columns.h - the columns that reports show for a finished run: metrics of
// trainer/results/metrics.h, and where a result holds them. runs.csv, the
// tables of terminal and page, and the results document are loops over this
// list.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RUN_COLUMNS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RUN_COLUMNS_H_

#include <string>
#include <vector>

#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

struct RunColumn {
  const trainer::Metric& metric;
  // NaN: this run lacks it.
  double (*read)(const trainer::RunResult&);
  bool in_table = false;  // one of the few that fit the grid's table
};

// The columns in the order of runs.csv.
const std::vector<RunColumn>& RunColumns();

// The column of `metric`. Throws InternalError if there is none.
const RunColumn& ColumnOf(const trainer::Metric& metric);

// "loss (nat/token): mean cross-entropy of ...": for legends.
std::string Legend(const trainer::Metric& metric);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RUN_COLUMNS_H_
