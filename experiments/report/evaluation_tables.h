// SPDX-License-Identifier: Apache-2.0
//
// evaluation_tables.h - tables of the measurements on final parameters:
// inference with other tau, and router health.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_EVALUATION_TABLES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_EVALUATION_TABLES_H_

#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

// A table of texts, for terminal and HTML.
struct EvaluationTable {
  std::string title, caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // at least one
};

// The tables for which anything was measured. Rows follow the grid; values are
// means over the finished seeds that have the number.
std::vector<EvaluationTable> EvaluationTables(const GridOutcome& outcome);

// Tables for a terminal of 100 columns; "" if there are none.
std::string DescribeTables(const std::vector<EvaluationTable>& tables);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_EVALUATION_TABLES_H_
