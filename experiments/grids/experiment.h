// SPDX-License-Identifier: Apache-2.0
//
// experiment.h - the experiments of the paper at one scale: a table or figure
// each (grids/experiments/*.toml), of rows of the scale's grid file and of rows
// of their own.
//
// Experiments of one scale share a folder, and a run that several need is
// trained once: runs are the same if their corpus and their configuration are
// (ConfigHash), whatever the rows are called. Its folder has the name that the
// first experiment gives it, in the order of ExperimentNames(), whoever trains
// it; and what any of them measures after training is measured for all.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

// What LoadExperiment calls all of them.
inline constexpr char kAllExperiments[] = "all";

// The experiments at the scale of the grid file `scale`, each a grid, in the
// order of ExperimentNames(). The first is the grid file itself. Throws as
// LoadGrid, and ConfigError with both places if two experiments have a row of
// one name with different configurations on a corpus.
std::vector<Grid> LoadExperiments(const std::filesystem::path& scale,
                                  const std::vector<std::string>& overrides,
                                  const SeedOption& seeds = {});

// One of them; or "all": every run that any of them needs, once. Throws
// ConfigError with a suggestion for another name.
Grid LoadExperiment(const std::string& name, const std::filesystem::path& scale,
                    const std::vector<std::string>& overrides,
                    const SeedOption& seeds = {});

// "CORPUS/HASH": runs of one scale that have the same are the same.
std::string RunIdentityKey(const GridRun& run);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_
