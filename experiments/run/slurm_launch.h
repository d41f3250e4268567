// SPDX-License-Identifier: Apache-2.0
//
// slurm_launch.h - trains a grid as jobs of a Slurm cluster.
#ifndef SOFTMOE_EXPERIMENTS_RUN_SLURM_LAUNCH_H_
#define SOFTMOE_EXPERIMENTS_RUN_SLURM_LAUNCH_H_

#include <chrono>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/slurm_jobs.h"
#include "experiments/run/run_grid.h"

namespace softmoe::experiments {

struct SlurmLaunchOptions {
  GridRunOptions run;  // jobs and threads are ignored
  SlurmPlace place;    // its folder is that of `run`
  bool detach = false;
  // How long after its task's end a result may stay invisible: NFS remembers
  // for 60 s (acdirmax, by default) what a folder lacked.
  std::chrono::seconds file_delay{60};
};

// For each corpus, submits an array with one task for each row that has
// selected unfinished runs, and waits until those are finished, or Slurm has
// ended the tasks and `file_delay` has passed; with `detach` it does not wait.
// Tasks of an earlier call that are still queued are not submitted again, but
// waited for. The caller reads the outcome from the runs' folders.
//
// Scripts, logs and job numbers are in SlurmFolder. Throws what RunGrid throws
// before it trains, what CheckSlurmRanks and CheckPrecisionOfTasks throw, and
// EnvironmentError if Slurm is missing or refuses a job. StoppedError (while
// waiting) leaves the jobs in the queue.
void RunOnSlurm(Grid grid, const SlurmLaunchOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_SLURM_LAUNCH_H_
