// SPDX-License-Identifier: Apache-2.0
//
// slurm_jobs.h - the jobs that train a grid on a Slurm cluster: for each corpus
// an array with one task for each row, and the sbatch text that runs it. `plan`
// prints these scripts, `run --launcher=slurm` submits them.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_
#define SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {

struct SlurmJob {
  std::string name;               // "softmoe-paper-owt"
  std::string corpus;             // "owt": all rows train on it
  std::vector<std::string> rows;  // ids: task i of the array runs rows[i]
  // The program and its arguments; the row id is appended as `--rows ROW`.
  // Arguments are quoted for the shell where necessary.
  std::vector<std::string> command;
  std::string start;          // the folder in which the command runs
  std::string logs;           // an existing folder for logs and kill counts
  int64_t gpus = 8;           // one process each; 0: CPUs only
  int64_t gpus_per_node = 4;  // at most
  int64_t ranks = 1;          // processes, if gpus = 0
  int64_t cores = 4;          // per process, if gpus = 0
  double hours = 1;           // expected, for the longest task
  std::vector<std::string> options;  // extra #SBATCH lines

  // Processes that train a run together.
  int64_t num_ranks() const { return gpus > 0 ? gpus : ranks; }
};

// Nodes and GPUs per node: as few nodes as possible with equally many GPUs
// each, at most gpus_per_node.
struct NodeLayout {
  int64_t nodes = 1, gpus_per_node = 1;
};
NodeLayout LayOutNodes(int64_t gpus, int64_t gpus_per_node);

// The text of the script. The time limit is 1.5 times the expected hours, in
// whole hours. Five minutes before it, Slurm sends SIGTERM to the runner, which
// saves its state and exits with 75. A task that exits so always requeues
// itself; one whose runner was killed (137), or that has several ranks of which
// one fell silent (5), does so at most three times. Ranks find each other
// through MPI: srun starts them where Slurm has PMIx, else mpirun, which is
// stopped early enough for its ranks to save as well. Throws ConfigError for a
// folder that sbatch could not read.
std::string SlurmScript(const SlurmJob& job);

// The log of task `task` of the array job `id`, where SlurmScript directs its
// output.
std::string SlurmLogName(const SlurmJob& job, const std::string& id,
                         size_t task);

// `word`, quoted so that a POSIX shell reads it as one word.
std::string ShellQuoted(const std::string& word);

// What the processes of a job need to know besides the grid.
struct SlurmPlace {
  std::string program = "bazel-bin/experiments/grid";
  std::filesystem::path start = ".";      // base of relative paths
  std::filesystem::path folder = {};      // the grid's results
  std::vector<std::string> options = {};  // more arguments of `grid run`
  int64_t ranks = 1;                      // per run, where a corpus has no GPUs
  // More `options`, used where several processes train a run.
  std::vector<std::string> rank_options = {};
};

// `grid_folder`/slurm: scripts, logs, and records of submitted jobs.
std::filesystem::path SlurmFolder(const std::filesystem::path& grid_folder);

// The command that trains `grid`, word by word; mpirun can start it, too.
std::vector<std::string> TaskCommand(const Grid& grid, const SlurmPlace& place);

// One job for each corpus of `rows` (estimates of runs of `grid`), with one
// task for each row, which trains all its seeds.
std::vector<SlurmJob> SlurmJobs(const Grid& grid,
                                const std::vector<RowEstimate>& rows,
                                const SlurmPlace& place);

// Throws ConfigError for a number of ranks (SlurmPlace::ranks) that conflicts
// with the GPUs of the run's corpus, or among which its balance groups do not
// divide: every task would end with that error.
void CheckSlurmRanks(const Grid& grid, const GridRun& run, int64_t ranks);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_SLURM_JOBS_H_
