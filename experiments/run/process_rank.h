// SPDX-License-Identifier: Apache-2.0
//
// process_rank.h - which process of one mpirun or srun this is, as its
// environment says; no MPI library is needed.
#ifndef SOFTMOE_EXPERIMENTS_RUN_PROCESS_RANK_H_
#define SOFTMOE_EXPERIMENTS_RUN_PROCESS_RANK_H_

#include <cstdint>

namespace softmoe::experiments {

struct ProcessRank {
  int64_t rank = 0;        // from 0
  int64_t size = 0;        // processes in all; 0: the launcher does not say
  int64_t neighbours = 0;  // processes on this machine, with this one; 0: as
                           // above
};

// Reads the variables of the launcher that is nearest to this process: Open
// MPI, then PMI (MPICH, Intel MPI), PMIx, Slurm; also Slurm's if it started the
// processes with PMIx. Throws ConfigError if there are none, EnvironmentError
// if one is not a whole number or they contradict each other.
ProcessRank RankOfEnvironment();

// The number of the machine's cores that a process has for its threads: at
// least one, and no more than it may run on.
int64_t ShareOfCores(const ProcessRank& rank);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_PROCESS_RANK_H_
