// SPDX-License-Identifier: Apache-2.0
//
// experiment_tables.h - what an experiment's report shows besides the table and
// curves of every grid: clock times, which no result may hold, and the figure
// on active experts.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_EXPERIMENT_TABLES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_EXPERIMENT_TABLES_H_

#include <vector>

#include "experiments/report/evaluation_tables.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

// The tables depend on the paper's table that the experiment repeats
// (Grid::table); there are none if all its numbers are in the results, or if
// nothing is finished.
//
//   compute, throughput   hours, milliseconds a step and tokens a second, with
//                         the paper's own beside them on its own corpora
//   allocation            share of the validation tokens of each layer with 0,
//                         1, 2, ... active experts
//
// Means over the finished seeds; rows are the grid's, in its order.
std::vector<EvaluationTable> ExperimentTables(const GridOutcome& outcome,
                                              const golden::Document& paper);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_EXPERIMENT_TABLES_H_
