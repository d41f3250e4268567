// SPDX-License-Identifier: Apache-2.0
//
// rank_main.h - the main() of a program whose processes may be ranks of one
// run: how they find each other and end together.
#ifndef SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
#define SOFTMOE_TRAINER_RUN_RANK_MAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "core/errors.h"
#include "optimized/communicator/communicator.h"

namespace softmoe::trainer {

struct RankMainOptions {
  // The ranks are processes of an mpirun or srun; else this process is alone,
  // or has ranks in threads.
  bool mpi = false;
  // s. A rank for which others wait longer in a step ends all; 0: none does.
  double silence_limit = 600;
  bool quiet = false;
};

// The ranks of this process's run.
struct Ranks {
  optimized::Communicator& communicator;  // inside of its Run
  // Makes another communicator of the same ranks, on all of them: for work
  // whose failure some of them outlive. While it is in use, on any rank, the
  // first one is not.
  std::function<std::unique_ptr<optimized::Communicator>()> another;
};

// RunMain, where `body` is given this process's ranks, or itself as the only
// one. Messages of ranks other than 0 begin with "rank N: ". A rank that dies
// is its launcher's to notice; where one falls silent, those who wait for it
// end all, with 5 and its name (optimized/communicator/mpi.h).
int RunRankMain(const std::string& program, const RankMainOptions& options,
                const std::function<ExitCode(const Ranks&)>& body);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
