// SPDX-License-Identifier: Apache-2.0
//
// grid_progress.h - the progress of a grid and the time it still needs.
//
//   row 3/9 sparse-3, grid 31%, 1m20 left | step 150/300 | loss 3.2127 | ...
//   row 3/9 sparse-3 finished: val loss 3.1902 (unigram 5.8613), ..., 24s
//
// Runs side by side (--jobs) are processes: each reports its own run, and each
// counts the steps of all of them.
//
// On a terminal the first line is rewritten at every step; in a log it appears
// every runtime.log_every steps. Runs count by their estimated FLOPs,
// with the active experts that plans assume.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_PROGRESS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_PROGRESS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/text/progress.h"
#include "experiments/run/run_outcome.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

class GridProgress {
 public:
  // `selected` are indices into outcome.runs, the runs of this session;
  // finished ones count as done, but not towards the speed.
  GridProgress(const GridOutcome& outcome, const std::vector<size_t>& selected,
               const ProgressOptions& options = {});

  // Prints a line that stays.
  void Note(const std::string& line);
  // Run `position` of `selected` starts. Step and Evaluating refer to the
  // latest run or, in a forked process, to that process's run.
  void Begin(size_t position);
  // The run has done a step.
  void Step(const trainer::StepRecord& record);
  // Called once per balance group while the run is measured after training.
  void Evaluating();
  // Run `position` has ended: here, in a forked process, or in an unrelated
  // one.
  void End(size_t position, const RunOutcome& outcome);
  std::string Place(size_t position) const;  // "row 3/9 sparse-3"

  // Share of the work of all selected runs that is done, in [0, 1].
  double done() const;
  // Time until the last run ends; infinite before a few steps are done.
  double seconds_left() const;

 private:
  struct Run {
    std::string name;  // as short as is unambiguous in the grid
    Config config;
    int64_t log_every = 1;
    double flops_per_step = 0;
    bool finished_before = false;
    bool begun = false;
    double start = 0;
  };
  // Lives in memory that forked processes share.
  struct Steps {
    std::atomic<int64_t> first = 0;  // done before this session
    std::atomic<int64_t> done = 0;
  };

  std::string Share() const;  // "grid 31%, 1m20 left"

  Progress output_;
  std::function<double()> clock_;  // seconds
  std::vector<Run> runs_;
  std::shared_ptr<Steps[]> steps_;  // one per run
  size_t current_ = 0;
  double start_ = 0;             // start of the first run
  double seconds_per_step_ = 0;  // recent mean of the current run
  bool begun_ = false;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_PROGRESS_H_
