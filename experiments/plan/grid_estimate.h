// SPDX-License-Identifier: Apache-2.0
//
// grid_estimate.h - what every row of a grid is expected to cost, beside what
// the paper says that its own row cost.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_
#define SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/grids/cost_model.h"
#include "experiments/grids/grid_file.h"
#include "experiments/plan/initial_activity.h"
#include "golden/document/document.h"

namespace softmoe::experiments {

// One row on one corpus: runs that differ only in the seed.
struct RowEstimate {
  GridRun run;        // the first of them
  int64_t seeds = 0;  // how many there are
  // The mean for which FLOPs and memory are computed: the paper's Train-AE of
  // this row on this corpus or, for stand-ins and rows of one's own, k.
  double active_experts = 0;
  bool active_from_paper = false;
  RunCost cost;  // of one run
  InitialActivity initial;
  std::optional<double> paper_gpu_hours;  // of the paper's own run
  int64_t disk_bytes = 0;                 // of one run's folder at its peak
  int64_t left_bytes = 0;                 // of it, once the run is finished
  int64_t checkpoint_bytes = 0;           // of one checkpoint, of which two are
                                          // there while one is written
  int64_t calibration_bytes = 0;          // memory of a host, for tau
  int64_t cpu_bytes = 0;                  // memory of the CPU trainer
};

// Corpus by corpus, row by row, as in the file.
//
//   paper  the paper's document (//golden/paper)
std::vector<RowEstimate> EstimateGrid(const Grid& grid,
                                      const golden::Document& paper);

// Sums over all runs of the rows. The disk holds what finished runs leave, and
// the peak of the run at work.
struct GridTotal {
  int64_t runs = 0, tokens = 0, disk_bytes = 0;
  double train_flops = 0, gpu_hours = 0, core_hours = 0;
};
GridTotal Total(const std::vector<RowEstimate>& rows);

// A number of the paper: a cell of row `row` of one of its tables, if there is
// such a row and the cell is not empty.
std::optional<double> PaperNumber(const golden::Document& paper,
                                  const std::string& table,
                                  const std::string& row,
                                  const std::string& column);

// How the sequences of a step are divided over the GPUs. Whole balance groups
// stay on one GPU, since the load-balancing loss is defined over them
// (DESIGN.md, ruling 6); `problem` says what does not divide, and is empty if
// everything does.
struct BatchSplit {
  int64_t groups = 0;          // of a step
  int64_t groups_per_gpu = 0;  // 0 if they do not divide
  int64_t micro_batches = 0;   // of a GPU and step; 0 if they do not divide
  std::string problem;
};
BatchSplit SplitBatch(const TrainingConfig& training, int64_t gpus);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_
