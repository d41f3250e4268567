// SPDX-License-Identifier: Apache-2.0
//
// rank_main.h - the main() of a program whose processes may be ranks of one
// run: how they find each other, miss each other, and end together.
#ifndef SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
#define SOFTMOE_TRAINER_RUN_RANK_MAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "core/errors.h"
#include "optimized/communicator/communicator.h"

namespace softmoe::trainer {

// What the ranks of a run are.
enum class RankKind {
  kNone,         // this process is alone, or has ranks in threads
  kMpi,          // processes of an mpirun
  kEnvironment,  // processes that the environment tells who they are, over TCP
};

struct RankMainOptions {
  RankKind kind = RankKind::kNone;
  // s. A rank that is silent for longer ends all; 0: none is missed that way.
  double silence_limit = 30;
  // s that ranks wait for each other at the start.
  double join_limit = 120;
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
// one. Messages of ranks other than 0 begin with "rank N: ". Where a rank dies
// or falls silent, this process ends at once, with 5 and the name of that rank
// (optimized/communicator/watch.h).
int RunRankMain(const std::string& program, const RankMainOptions& options,
                const std::function<ExitCode(const Ranks&)>& body);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
