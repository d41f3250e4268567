// SPDX-License-Identifier: Apache-2.0
//
// grid_file.h - a grid as data: rows x corpora x seeds, or a subset, read from
// TOML (GRIDS.md, grids/*.toml).
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
  std::string stands_for;     // stand-ins only: the dataset to compare with
  int64_t gpus = 0;           // as in the paper's runs; 0 where meaningless
};

struct GridRow {
  std::string id;         // "softmoe-star-1.5-calibrated"
  std::string label;      // "SoftMoE*"
  std::string paper_row;  // "softmoe_star/k1.5/a2", after the dataset
  std::string variant;    // "calibrated", "paper" (ruling 7), or ""
  // The paper's dataset whose rows this row is compared with, whatever the
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
  // Experiments only: the first one that has this run, and its row, which names
  // the run's folder; "": this grid and its row.
  std::string first_experiment, first_row;
  // Runs with a lower turn are trained first; equal turns keep their order.
  int64_t turn = 0;
  // "owt/sparse/k1": the paper's row that this one repeats or, on a stand-in
  // corpus, is put beside; "" if there is none.
  std::string paper_id() const;
};

// What prepare.h's key of the token files of one text depends on.
std::string TokensKey(const Config& config);

// The value of `--seeds`: nothing, a list of seeds, or a count ("the first
// four").
struct SeedOption {
  SeedOption() = default;
  explicit SeedOption(std::vector<int64_t> list) : listed(std::move(list)) {}
  SeedOption(std::initializer_list<int64_t> list) : listed(list) {}

  std::vector<int64_t> listed;
  size_t first = 0;  // used without a list; 0: all seeds of the grid

  // The chosen seeds of a grid that has `seeds`. If `first` is larger, the
  // integers after the largest follow. Throws ConfigError if too few follow.
  std::vector<int64_t> Apply(const std::vector<int64_t>& seeds) const;
};

struct Grid {
  std::filesystem::path path;          // the grid file
  std::vector<std::string> overrides;  // without spaces around "="
  std::string name;                    // "smoke", "tau"
  std::string scale;                   // one of Scales()
  std::string title;
  std::vector<int64_t> seeds;
  bool other_seeds = false;  // than those of the file (--seeds)
  std::vector<GridCorpus> corpora;
  std::vector<GridRow> rows;
  Cluster cluster;
  trainer::EvaluationPlan evaluations;  // from the file, for every run
  // Experiments only (experiment.h): name and title, the grid file whose folder
  // it shares, and the paper's table that it repeats.
  std::string experiment, experiment_title, scale_grid, table;
  std::vector<GridRun> runs;  // corpus by corpus, row by row, seed by seed
};

// Scales of grids, from small to large; they decide which verdicts are
// possible.
const std::vector<std::string>& Scales();

// The experiments of the paper, in the order in which `all` runs them.
const std::vector<std::string>& ExperimentNames();

// This project's experiments, which no table or figure of the paper needs: not
// part of `all`, and only at scales whose [experiments] names them.
const std::vector<std::string>& OwnExperimentNames();

// ExperimentNames, then OwnExperimentNames.
std::vector<std::string> EveryExperimentName();

bool IsOwnExperiment(const std::string& name);

// Whether `grid` is main, or a grid file by itself.
bool IsMain(const Grid& grid);

// Whether all overrides are of [runtime]. Then the configuration is the file's,
// but bits may differ between levels (runtime.isa) and devices.
bool SetsOnlyRuntime(const Grid& grid);

// Reads and validates a grid; `overrides` ("section.key=value") apply to every
// run, and `seeds` replaces the seeds of the file by position: a row that chose
// the file's first two gets the first two of these. Throws ConfigError with
// FILE:LINE:COLUMN for unknown keys, a shipped grid's name in any other file,
// repeated ids, seeds and corpora that the grid lacks, rows and corpora without
// a run, and invalid configurations; EnvironmentError if the file cannot be
// read.
Grid LoadGrid(const std::filesystem::path& path,
              const std::vector<std::string>& overrides,
              const SeedOption& seeds = {});

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_FILE_H_
