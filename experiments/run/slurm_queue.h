// SPDX-License-Identifier: Apache-2.0
//
// slurm_queue.h - submits scripts to Slurm and asks what became of them, by its
// programs sbatch and squeue.
#ifndef SOFTMOE_EXPERIMENTS_RUN_SLURM_QUEUE_H_
#define SOFTMOE_EXPERIMENTS_RUN_SLURM_QUEUE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace softmoe::experiments {

struct SlurmJobId {
  std::string number;   // the array's
  std::string cluster;  // "" if there is only one cluster
};

// Throws EnvironmentError if sbatch or squeue is missing.
void RequireSlurm();

// Throws EnvironmentError with sbatch's message if it refuses.
SlurmJobId SubmitScript(const std::filesystem::path& script);

// A task of an array that Slurm has not ended.
struct SlurmTask {
  int64_t index = 0;
  std::string state;   // "RUNNING", "PENDING", "COMPLETING", ...
  std::string reason;  // why it is pending
};

// The job's tasks in the queue; none once Slurm has ended them all or forgotten
// the job. nullopt if Slurm does not answer; `*failure` is then squeue's
// message.
std::optional<std::vector<SlurmTask>> TasksInQueue(const SlurmJobId& job,
                                                   std::string* failure);

// "3 running, 2 pending (Priority)".
std::string DescribeTasks(const std::vector<SlurmTask>& tasks);

// Commands for people: "squeue --jobs=12" and "scancel 12".
std::string FollowCommand(const SlurmJobId& job);
std::string CancelCommand(const SlurmJobId& job);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_SLURM_QUEUE_H_
