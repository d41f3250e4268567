// SPDX-License-Identifier: Apache-2.0
//
// launched_rank.h - which rank this process is, as the environment says that
// whoever started it has set.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_LAUNCHED_RANK_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_LAUNCHED_RANK_H_

#include <cstdlib>
#include <functional>
#include <string>

namespace softmoe::optimized {

struct LaunchedRank {
  int rank = 0, size = 1;
  int local_rank = 0;   // among those of its machine: the device to take
  std::string address;  // rank 0's machine
  int port = 0;         // where rank 0 listens; 0, of rank 0 only: a free one
};

// The value of an environment variable, or nullptr.
using Lookup = std::function<const char*(const char* name)>;

// From RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and LOCAL_RANK (0 if it is
// not there), as torchrun sets them; where there is no RANK, from what srun
// sets: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, the first node of the step,
// or of the job, else SLURM_LAUNCH_NODE_IPADDR, and a port between 20000 and
// 29999 that follows from the numbers of job and step. MASTER_ADDR and
// MASTER_PORT count there, too.
// Errors   ConfigError naming the variable that is missing or has no such value.
LaunchedRank RankFromEnvironment(const Lookup& lookup = &std::getenv);

// The first name of a Slurm list: "node07" of "node[07-09,12],login".
std::string FirstNode(const std::string& nodes);

// SOFTMOE_RANKS_SECRET, or the first line of the file that
// SOFTMOE_RANKS_SECRET_FILE names.
// Errors   ConfigError without either, for less than 16 characters, and for a
//          file that others than its owner may read or write; EnvironmentError
//          if it cannot be read.
std::string SecretFromEnvironment(const Lookup& lookup = &std::getenv);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_LAUNCHED_RANK_H_
