// SPDX-License-Identifier: Apache-2.0
//
// rank_main.h - the main() of a program whose processes may be ranks of one
// run: the options that say which ranks train together, how they find each
// other, and how they stop and end together.
#ifndef SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
#define SOFTMOE_TRAINER_RUN_RANK_MAIN_H_

#include <functional>
#include <memory>
#include <string>

#include "core/errors.h"
#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"
#include "trainer/run/rank_devices.h"

namespace CLI {
class App;
}  // namespace CLI

namespace softmoe::trainer {

// What the command lines of //:train and of `grid run` say about ranks.
struct RankOptions {
  std::string ranks = "1";  // as it was given
  // Seconds. All end if processes wait longer for one in a step; 0: no limit.
  double silence_limit = 600;
  ExchangeChoice exchange = ExchangeChoice::kAuto;

  // Whether the ranks are processes of an mpirun or srun; if not, this process
  // is alone, or has ranks in threads.
  bool mpi() const { return ranks == "mpi"; }
  // Returns the number of ranks in each process: 1 if the processes are ranks.
  // Errors   ConfigError for a word that means nothing.
  int in_process() const;
};

// Adds --exchange to `app`, whose result goes into `options`.
void AddExchangeOption(CLI::App& app, RankOptions* options);

// Adds --ranks, --exchange and --silence-limit to `app`, whose results go into
// `options`.
void AddRankOptions(CLI::App& app, RankOptions* options);

// The ranks of this process's run.
struct Ranks {
  optimized::Communicator& communicator;  // inside of its Run
  // Makes another communicator of the same ranks, for work whose failure some
  // of them outlive. All ranks must call it. While it is in use on any rank,
  // the first one must not be used.
  std::function<std::unique_ptr<optimized::Communicator>()> another;
};

// RunMain whose `body` is given the ranks of this process's run, which may be
// this process alone. Messages of ranks other than 0 begin with "rank N: ". The
// launcher notices a rank that dies. If a rank falls silent, those that wait
// for it end all, with 5 and its name (optimized/communicator/mpi.h).
int RunRankMain(const std::string& program, const RankOptions& options,
                const std::function<ExitCode(const Ranks&)>& body);

// Returns the first rank for which `mine` is true, or -1. All ranks must call
// it, and get the same result.
int FirstRankWhere(bool mine, optimized::Communicator& communicator);

// Returns the first rank to which a signal has come, or -1. All ranks must call
// it, and get the same result, so that a signal to any rank stops all ranks at
// the same place.
int RankAskedToStop(const StopSignal& stop,
                    optimized::Communicator& communicator);

// Throws a StoppedError that names the signal, or the rank to which it came.
// `done` says what state the user will find and how to go on.
[[noreturn]] void ThrowStopped(const StopSignal& stop, int asked_rank,
                               const std::string& done);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
