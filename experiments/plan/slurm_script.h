// SPDX-License-Identifier: Apache-2.0
//
// slurm_script.h - the sbatch text that runs one corpus of a grid on a Slurm
// cluster: a job array with one task for each row.
#ifndef SOFTMOE_EXPERIMENTS_PLAN_SLURM_SCRIPT_H_
#define SOFTMOE_EXPERIMENTS_PLAN_SLURM_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace softmoe::experiments {

struct SlurmJob {
  std::string name;               // "softmoe-paper-owt": of the job
  std::vector<std::string> rows;  // ids: task i of the array runs rows[i]
  // Words of the command after `bazel-bin/experiments/grid`; the row id is
  // appended as `--rows ROW`. Words are quoted for the shell where necessary.
  std::vector<std::string> command;
  int64_t gpus = 8;
  int64_t gpus_per_node = 4;         // at most
  double hours = 1;                  // expected, of the longest task
  std::vector<std::string> options;  // more #SBATCH lines
};

// Nodes and GPUs on each: as few nodes as possible with the same number of GPUs
// on each, at most gpus_per_node.
struct NodeLayout {
  int64_t nodes = 1, gpus_per_node = 1;
};
NodeLayout LayOutNodes(int64_t gpus, int64_t gpus_per_node);

// The text of the script. The time limit is 1.5 times the expected hours, in
// whole hours; five minutes before it Slurm sends SIGTERM to the runner, which
// saves its state and ends with 75, and the task puts itself back into the
// queue.
std::string SlurmScript(const SlurmJob& job);

// `word`, quoted so that a POSIX shell reads it as one word.
std::string ShellQuoted(const std::string& word);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_SLURM_SCRIPT_H_
