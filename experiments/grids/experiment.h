// SPDX-License-Identifier: Apache-2.0
//
// experiment.h - the experiments of the paper at one scale: each is a table or
// figure (grids/experiments/*.toml), made of rows of the scale's grid file or
// of rows of its own.
//
// Experiments of one scale share a folder, and a run that several need is
// trained once: runs are the same if their corpus and their configuration are
// (ConfigHash), whatever the rows are called. Its folder has the name that the
// first experiment with its row, in the order of ExperimentNames(), gives it,
// whatever the seeds and whichever experiment trains it. What any experiment
// measures after training is measured for all.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

// The name that stands for all experiments in LoadExperiment.
inline constexpr char kAllExperiments[] = "all";

// The experiments at the scale of the grid file `scale`, one grid each: those
// of ExperimentNames() in that order, then those of OwnExperimentNames() that
// the file names. The first is the grid file itself. Throws what LoadGrid
// throws, and ConfigError with both places if rows of two experiments have the
// same name but different configurations on a corpus.
std::vector<Grid> LoadExperiments(const std::filesystem::path& scale,
                                  const std::vector<std::string>& overrides,
                                  const SeedOption& seeds = {});

// The experiments at this scale that can be read, with the seeds of the files.
// A user's own scale may lack rows on which others build; `problems` gets the
// reasons why those cannot be read.
std::vector<Grid> ReadableExperiments(const std::filesystem::path& scale,
                                      const std::vector<std::string>& overrides,
                                      std::vector<std::string>* problems);

// Whether an experiment takes every row of its scale and adds none. It can be
// read for any file; the others show that the file is a scale.
bool TakesEveryRow(const Grid& experiment, const Grid& scale);

// One experiment; or, for "all", every run that a table or figure of the paper
// needs, once. Throws ConfigError with a suggestion for an unknown name, and
// for an experiment that the scale does not have. Loading one experiment
// ignores others that cannot be read with these overrides or seeds.
Grid LoadExperiment(const std::string& name, const std::filesystem::path& scale,
                    const std::vector<std::string>& overrides,
                    const SeedOption& seeds = {});

// "CORPUS/HASH": runs of one scale with equal keys are the same run.
std::string RunIdentityKey(const GridRun& run);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_EXPERIMENT_H_
