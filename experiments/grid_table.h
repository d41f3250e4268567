// SPDX-License-Identifier: Apache-2.0
//
// grid_table.h - what a grid measured, in the shape of the paper's Table 1.
#ifndef SOFTMOE_EXPERIMENTS_GRID_TABLE_H_
#define SOFTMOE_EXPERIMENTS_GRID_TABLE_H_

#include <string>
#include <vector>

#include "experiments/row_summary.h"
#include "experiments/run_outcome.h"

namespace softmoe::experiments {

// A table as texts, for a terminal and for HTML alike.
struct GridTableRow {
  std::string corpus;  // its id
  std::string budget;  // "= 1", "<= 2"; "" for a row that is not finished
  std::string label;   // "SoftMoE*"; with the variant where there is one
  std::string k, alpha, tau;
  std::string train_experts, infer_experts;  // mean active experts
  std::string active_parameters;             // in millions, exact count
  std::string loss;                          // held-out, T = 1, noise off
  std::string deviation;  // of the loss over seeds; "" for one seed
  std::string unigram;    // held-out loss of the training unigram
  std::string without;    // percent of (token, layer) without an expert
  std::string runs;       // finished / all seeds
  std::string problem;    // "failed", "not finished"; else ""
};

// By corpus, expert budget, and order in the grid, as the paper groups them.
std::vector<GridTableRow> MakeGridTable(const GridOutcome& outcome);

// The table for a terminal of 100 columns, with a legend.
std::string DescribeGridTable(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRID_TABLE_H_
