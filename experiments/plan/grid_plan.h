// SPDX-License-Identifier: Apache-2.0
//
// grid_plan.h - what `grid plan` and `grid list` print: what a grid will train,
// its cost, what looks wrong, and the script that runs it on a cluster.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_GRID_PLAN_H_
#define SOFTMOE_EXPERIMENTS_PLAN_GRID_PLAN_H_

#include <string>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/slurm_jobs.h"

namespace softmoe::experiments {

// What starts the processes that train a grid.
enum class Launcher { kLocal, kMpi, kSlurm };

// Slurm for a grid with GPUs, else this process.
Launcher DefaultLauncher(const Grid& grid);

// The plan of all runs of `grid`, with results in `place.folder`, as text of at
// most 100 columns, except for Slurm and MPI commands, which may be longer.
// `tokens` are prefixes of token files, by corpus, whose sizes are used.
// Nothing is run, downloaded or written. Throws ConfigError for ranks that `run
// --launcher=slurm` would refuse, what UsePrepared throws, and DataError or
// EnvironmentError if the paper's goldens, which come with the program, cannot
// be read.
std::string DescribePlan(const Grid& grid, const SlurmPlace& place,
                         Launcher launcher, const TokenPrefixes& tokens = {});

// The grids that come with the program: name, runs, scale, cost, title; and
// their experiments.
std::string DescribeGrids();

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_GRID_PLAN_H_
