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
  // s. A process for which others wait longer in a step ends all; 0: none does.
  double silence_limit = 600;
  ExchangeChoice exchange = ExchangeChoice::kAuto;

  // The ranks are processes of an mpirun or srun; else this process is alone,
  // or has ranks in threads.
  bool mpi() const { return ranks == "mpi"; }
  // The ranks in threads of each process: 1 where processes are the ranks.
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
  // Makes another communicator of the same ranks, on all of them: for work
  // whose failure some of them outlive. While it is in use, on any rank, the
  // first one is not.
  std::function<std::unique_ptr<optimized::Communicator>()> another;
};

// RunMain, where `body` is given this process's ranks, or itself as the only
// one. Messages of ranks other than 0 begin with "rank N: ". A rank that dies
// is its launcher's to notice; where one falls silent, those who wait for it
// end all, with 5 and its name (optimized/communicator/mpi.h).
int RunRankMain(const std::string& program, const RankOptions& options,
                const std::function<ExitCode(const Ranks&)>& body);

// The first rank for which `mine` is true, or -1; the same on all ranks, which
// all call it.
int FirstRankWhere(bool mine, optimized::Communicator& communicator);

// A signal that comes to any rank stops all of them, at the same place.
//
// The first rank to which a signal has come, or -1; the same on all ranks,
// which all call it.
int RankAskedToStop(const StopSignal& stop,
                    optimized::Communicator& communicator);

// Throws StoppedError, which names the signal, or the rank to which it came.
// `done` says what state the user will find and how to go on.
[[noreturn]] void ThrowStopped(const StopSignal& stop, int asked_rank,
                               const std::string& done);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_MAIN_H_
