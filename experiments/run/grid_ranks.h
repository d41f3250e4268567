// SPDX-License-Identifier: Apache-2.0
//
// grid_ranks.h - processes that train every run of a grid together, as the
// ranks of one training.
//
// Rank 0 walks through the grid, holds its locks, writes and prints; the others
// do what it says: train a run with it, or end. A failure that ends a run need
// not end the grid, so each run has its own communicator.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_RANKS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_RANKS_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"
#include "trainer/results/run_result.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/trainer.h"

namespace softmoe::experiments {

class GridRanks {
 public:
  // A single process is rank 0 of a grid that no other rank trains.
  explicit GridRanks(const trainer::Ranks& ranks) : ranks_(ranks) {}

  bool leads() const { return ranks_.communicator.rank() == 0; }
  int size() const { return ranks_.communicator.size(); }

  // Called by all ranks before anything else. Errors: as Communicator::Agree.
  void Agree(std::span<const optimized::Agreement> agreements);

  // Rank 0 only: calls TrainRun together with the other ranks.
  //
  //   run      which one, as Next tells them
  //   options  `processes` is filled in here
  // Errors     What TrainRun throws here; NumericsError if another rank has met
  //            it; StoppedError if any rank has been asked to stop since the
  //            last run.
  trainer::RunResult Lead(size_t run, const Config& config,
                          trainer::RunOptions options);

  // Rank 0 only: tells the others to end, all with `code`.
  void Dismiss(ExitCode code);

  // Other ranks only: what to train next with Follow; nullopt at the end, when
  // code() is that of Dismiss. Errors: StoppedError, as Lead.
  struct Task {
    size_t run;
    std::filesystem::path tokens;
  };
  std::optional<Task> Next();
  ExitCode code() const { return code_; }

  // Other ranks only: does their part of Lead. A run that fails is no error
  // here as long as rank 0 can go on with another run.
  // Errors   What makes this rank end.
  void Follow(const Config& config, trainer::RunOptions options);

 private:
  // Sends `order` to the other ranks, or receives it from rank 0.
  struct Order;
  void Share(Order* order);
  // Calls TrainRun; all ranks must.
  trainer::RunResult Train(const Config& config, trainer::RunOptions options);

  const trainer::Ranks ranks_;
  const StopSignal stop_;
  ExitCode code_ = ExitCode::kDone;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_RANKS_H_
