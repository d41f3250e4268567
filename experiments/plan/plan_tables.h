// SPDX-License-Identifier: Apache-2.0
//
// plan_tables.h - the parts of a plan: tables of one corpus, what their columns
// mean, totals.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_
#define SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_

#include <string>
#include <vector>

#include "experiments/grids/cost_model.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

// `text` in lines of at most 98 columns: the first starts with `first` spaces,
// the others with two more.
std::string Paragraph(const std::string& text, size_t first = 0);

// "10 layers, d_model 640, ..."
std::string DescribeModel(const ModelConfig& model);

// The rows of one corpus: how a step is made up, what is trained, what that
// costs.
std::string DescribeCorpus(const std::vector<RowEstimate>& rows);

// What the columns of DescribeCorpus mean, and under which assumptions.
std::string PlanLegend(const Cluster& cluster, bool gpus);

// "owt: 14 runs, ..., 121 GPU hours (the paper's 9 rows: 180), ... on disk"
std::string TotalLine(const std::string& name,
                      const std::vector<RowEstimate>& rows, bool gpus);

// "121 GPU hours", "5 core minutes"
std::string CostInWords(const GridTotal& total, bool gpus);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_PLAN_TABLES_H_
