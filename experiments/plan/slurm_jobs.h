// SPDX-License-Identifier: Apache-2.0
//
// slurm_jobs.h - the jobs that train a grid on a Slurm cluster, one array per
// corpus; `plan` prints their scripts, `run --launcher=slurm` submits them.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_
#define SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/plan/slurm_script.h"

namespace softmoe::experiments {

// Facts about a job that its processes need besides the grid.
struct SlurmPlace {
  std::string program = "bazel-bin/experiments/grid";
  std::filesystem::path start = ".";      // base of relative paths
  std::filesystem::path folder = {};      // the grid's results
  std::vector<std::string> options = {};  // further words of `grid run`
  int64_t ranks = 1;                      // per run, where a corpus has no GPUs
};

// `folder`/slurm: scripts, logs, and records of submitted jobs.
std::filesystem::path SlurmFolder(const std::filesystem::path& grid_folder);

// The words of the command that trains `grid`, usable with mpirun, too.
std::vector<std::string> TaskCommand(const Grid& grid, const SlurmPlace& place);

// One job for each corpus of `rows` (estimates of runs of `grid`), with one
// task for each row, which trains all its seeds.
std::vector<SlurmJob> SlurmJobs(const Grid& grid,
                                const std::vector<RowEstimate>& rows,
                                const SlurmPlace& place);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_
