// SPDX-License-Identifier: Apache-2.0
//
// plan_tables.h - parts of a plan: tables of one corpus, their legend, totals.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_

#include <string>
#include <vector>

#include "experiments/grids/cost_model.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// `text` in lines of at most 98 columns: `first` spaces before the first line,
// two more before the others.
std::string Paragraph(const std::string& text, size_t first = 0);

// "10 layers, d_model 640, ..."
std::string DescribeModel(const ModelConfig& model);

// The rows of one corpus: how a step is divided, what is trained, and its cost.
std::string DescribeCorpus(const std::vector<RowEstimate>& rows);

// Explains the columns of DescribeCorpus and their assumptions.
std::string PlanLegend(const Cluster& cluster, bool gpus);

// "owt: 14 runs, ..., 121 GPU hours (the paper's 9 rows: 180), ... on disk"
std::string TotalLine(const std::string& name,
                      const std::vector<RowEstimate>& rows, bool gpus);

// "121 GPU hours", "5 core minutes"
std::string CostInWords(const GridTotal& total, bool gpus);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_
