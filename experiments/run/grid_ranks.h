// SPDX-License-Identifier: Apache-2.0
//
// grid_ranks.h - processes that train every run of a grid together, as the
// ranks of one training.
//
// Rank 0 walks through the grid, holds its locks, writes and prints; the others
// do what it says: train this run with it, and in the end, end. What ends a run
// need not end the grid, so each run has a communicator of its own.
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
  // One process is rank 0 of a grid that nobody else trains.
  explicit GridRanks(const trainer::Ranks& ranks) : ranks_(ranks) {}

  bool leads() const { return ranks_.communicator.rank() == 0; }
  int size() const { return ranks_.communicator.size(); }

  // Called by all ranks, before anything else. Errors: as Communicator::Agree.
  void Agree(std::span<const optimized::Agreement> agreements);

  // Rank 0 only: TrainRun, together with the others.
  //
  //   run      which one, as Next tells them
  //   options  `processes` is filled in here
  // Errors     What TrainRun throws here; NumericsError if another rank has met
  //            it; StoppedError if any rank has been asked to stop since the
  //            last run.
  trainer::RunResult Lead(size_t run, const Config& config,
                          trainer::RunOptions options);

  // Rank 0 only: there is nothing more to do, and all end with `code`.
  void Dismiss(ExitCode code);

  // Other ranks only: what to train next, with Follow; nothing at the end, when
  // code() is that of Dismiss. Errors: StoppedError, as Lead.
  struct Task {
    size_t run;
    std::filesystem::path tokens;
  };
  std::optional<Task> Next();
  ExitCode code() const { return code_; }

  // Other ranks only: their part of Lead. A run that fails is no error here, as
  // long as rank 0 can go on with another one.
  // Errors   What makes this rank end.
  void Follow(const Config& config, trainer::RunOptions options);

 private:
  // Tells the other ranks `order`, or is told.
  struct Order;
  void Share(Order* order);
  // TrainRun on all ranks.
  trainer::RunResult Train(const Config& config, trainer::RunOptions options);

  const trainer::Ranks ranks_;
  const StopSignal stop_;
  ExitCode code_ = ExitCode::kDone;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_RANKS_H_
