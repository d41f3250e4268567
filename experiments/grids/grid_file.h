// SPDX-License-Identifier: Apache-2.0
//
// grid_file.h - a grid as data: rows x corpora x seeds, or some of them, read
// from TOML (GRIDS.md, grids/*.toml).
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_GRID_FILE_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_GRID_FILE_H_

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "experiments/grids/cost_model.h"
#include "trainer/evaluation/evaluation_plan.h"

namespace softmoe::experiments {

struct GridCorpus {
  std::string id;  // "owt"
  std::string title;
  std::string paper_dataset;  // "owt" or "c4"; "" for a stand-in
  std::string stands_for;     // for a stand-in: whose rows it is put beside
  int64_t gpus = 0;           // of the paper's runs; 0 where meaningless
};

struct GridRow {
  std::string id;         // "softmoe-star-1.5-calibrated"
  std::string label;      // "SoftMoE*"
  std::string paper_row;  // "softmoe_star/k1.5/a2", after the dataset
  std::string variant;    // "calibrated", "paper" (ruling 7), or ""
  // The dataset whose rows of the paper this one is put beside, whatever the
  // corpus ("owt", "unstated"); "": that of the corpus.
  std::string paper_dataset;
  std::string place;  // FILE:LINE:COLUMN
};

// One training run of the grid.
struct GridRun {
  std::string id;  // "foldoc/sparse-1/seed1234"
  GridCorpus corpus;
  GridRow row;
  int64_t seed = 0;
  Config config;  // validated
  RuntimeConfig runtime;
  trainer::EvaluationPlan evaluations;
  // In an experiment: the first one that has this run, and its name for the
  // row, which names the run's folder; "": this grid, and its row.
  std::string first_experiment, first_row;
  // Runs of a lower turn are trained first, those of one turn as they stand.
  int64_t turn = 0;
  // "owt/sparse/k1": the row of the paper's table that this one repeats, or,
  // on a stand-in corpus, is put beside; "" if there is none.
  std::string paper_id() const;
};

// What `--seeds` says: nothing, a list of seeds, or a number of them, "the
// first four".
struct SeedOption {
  SeedOption() = default;
  explicit SeedOption(std::vector<int64_t> list) : listed(std::move(list)) {}
  SeedOption(std::initializer_list<int64_t> list) : listed(list) {}

  std::vector<int64_t> listed;
  size_t first = 0;  // if there is no list; 0: all that the grid has

  // The chosen ones of a grid with these seeds. If more are asked for than it
  // has, the integers after its largest follow.
  std::vector<int64_t> Apply(const std::vector<int64_t>& seeds) const;
};

struct Grid {
  std::filesystem::path path;          // of the file
  std::vector<std::string> overrides;  // as given to LoadGrid
  std::string name;                    // "smoke", "tau"
  std::string scale;                   // one of Scales()
  std::string title;
  std::vector<int64_t> seeds;
  std::vector<GridCorpus> corpora;
  std::vector<GridRow> rows;
  Cluster cluster;
  trainer::EvaluationPlan evaluations;  // of the file, for every run
  // For an experiment (experiment.h): its name and title, the name of the grid
  // file whose folder it shares, and the table of the paper that it repeats.
  std::string experiment, experiment_title, scale_grid, table;
  std::vector<GridRun> runs;  // corpus by corpus, row by row, seed by seed
};

// The scales of grids, from small to large; they decide what verdicts may say.
const std::vector<std::string>& Scales();

// The experiments of the paper, in the order in which `all` runs them.
const std::vector<std::string>& ExperimentNames();

// Experiments of this project, which no table or figure of the paper needs: no
// part of `all`, and only at scales whose [experiments] names them.
const std::vector<std::string>& OwnExperimentNames();

// ExperimentNames, then OwnExperimentNames.
std::vector<std::string> EveryExperimentName();

bool IsOwnExperiment(const std::string& name);

// Reads and validates a grid; `overrides` ("section.key=value") apply to every
// run, and what `seeds` says replaces the seeds of the file, position by
// position: a row that chose the first two of the file gets the first two of
// these.
// Throws ConfigError with FILE:LINE:COLUMN for unknown keys, repeated ids,
// seeds and corpora that the grid lacks, rows and corpora without a run, and
// invalid configurations; EnvironmentError if the file cannot be read.
Grid LoadGrid(const std::filesystem::path& path,
              const std::vector<std::string>& overrides,
              const SeedOption& seeds = {});

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_FILE_H_
