// SPDX-License-Identifier: Apache-2.0
//
// grid_estimate.h - the expected cost of every row of a grid, and the cost of
// the paper's own row.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_
#define SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/grids/cost_model.h"
#include "experiments/grids/grid_file.h"
#include "experiments/plan/initial_activity.h"
#include "golden/document/document.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

// The mean of active experts that a run's FLOPs, hours and memory assume.
struct AssumedActivity {
  double active_experts = 0;
  bool from_paper = false;
};

// The paper's Train-AE of the run's row on its corpus or, for stand-ins and the
// user's own rows, k. `paper` is the paper's document (//golden/paper).
AssumedActivity AssumedActiveExperts(const GridRun& run,
                                     const golden::Document& paper);

// Throws what optimized::CheckPrecision throws for the device on which the
// run's tasks train: with GPUs "cuda", unless runtime.device names another.
// `plan` and `run --launcher=slurm` check every run before anything is
// submitted.
void CheckPrecisionOfTasks(const GridRun& run);

// One row on one corpus: runs that differ only in the seed.
struct RowEstimate {
  GridRun run;                // the first seed's
  int64_t seeds = 0;          // number of runs
  double active_experts = 0;  // assumed, by AssumedActiveExperts
  bool active_from_paper = false;
  RunCost cost;  // one run
  InitialActivity initial;
  std::optional<double> paper_gpu_hours;  // the paper's own run
  // Tokens trained on over those of the training split: of `prepared` or,
  // without it, of the paper's whole corpus. nullopt without either.
  std::optional<double> epochs;
  std::optional<trainer::PreparedCorpus> prepared = {};  // by UsePrepared
  int64_t disk_bytes = 0;         // one run's folder at its peak
  int64_t left_bytes = 0;         // left once the run is finished
  int64_t checkpoint_bytes = 0;   // one checkpoint; two exist while one is
                                  // written
  int64_t calibration_bytes = 0;  // host memory of each rank, for tau
  int64_t cpu_bytes = 0;          // the CPU trainer's memory
};

// Corpus by corpus, row by row, as in the file.
//
//   paper  the paper's document (//golden/paper)
std::vector<RowEstimate> EstimateGrid(const Grid& grid,
                                      const golden::Document& paper);

// PREFIX of token files by the corpus for which they are to be used.
using TokenPrefixes = std::map<std::string, std::filesystem::path>;

// Throws the ConfigError for --tokens NAME=PREFIX if no run has that corpus.
// `corpora` are those that runs have; repeats are ignored.
[[noreturn]] void RefuseTokens(const std::string& name,
                               const std::filesystem::path& prefix,
                               const std::vector<std::string>& corpora);

// Takes the sizes of token files from PREFIX.json, without reading the tokens.
// Throws ConfigError if no row has one of the corpora, and DataError or
// EnvironmentError if the files are not of their corpus.
void UsePrepared(const TokenPrefixes& tokens, std::vector<RowEstimate>* rows);

// Sums over all runs of the rows. Runs on corpora with GPUs count in GPU hours,
// others in core hours. Disk: what finished runs leave, plus the `at_work`
// largest peaks, at most one for each row.
struct GridTotal {
  int64_t runs = 0, gpu_runs = 0, disk_bytes = 0;
  // One run may have 2^62 tokens (config_check.cc), so two overflow int64_t.
  double tokens = 0, train_flops = 0, gpu_hours = 0, core_hours = 0;
};
GridTotal Total(const std::vector<RowEstimate>& rows, size_t at_work = 1);

// The paper's document.
golden::Document ReadPaper();

// A number of the paper: a cell in row `row` of one of its tables, if the row
// exists and the cell is not empty.
std::optional<double> PaperNumber(const golden::Document& paper,
                                  const std::string& table,
                                  const std::string& row,
                                  const std::string& column);

// How a step's sequences are divided over the GPUs. A balance group stays on
// one GPU, since the load-balancing loss is defined over it (DESIGN.md, ruling
// 6); `problem` says what does not divide, "" if everything does.
struct BatchSplit {
  int64_t groups_per_gpu = 0;  // 0 if they do not divide
  int64_t micro_batches = 0;   // per GPU and step; 0 if they do not divide
  std::string problem;
};
BatchSplit SplitBatch(const TrainingConfig& training, int64_t gpus);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_GRID_ESTIMATE_H_
