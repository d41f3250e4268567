// SPDX-License-Identifier: Apache-2.0
//
// grid_progress.h - how far a grid is, and how long it will take still.
//
//   row 3/9 sparse-3, grid 31%, 1m20 left | step 150/300 | loss 3.2127 | ...
//   row 3/9 sparse-3 finished: loss 3.1902 (unigram 5.8613), AE 3.00, 24s
//
// On a terminal the first line is rewritten at every step; in a log it appears
// every runtime.log_every steps. Runs count by their estimated FLOPs.
#ifndef SOFTMOE_EXPERIMENTS_GRID_PROGRESS_H_
#define SOFTMOE_EXPERIMENTS_GRID_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/progress.h"
#include "experiments/run_outcome.h"
#include "trainer/trainer.h"

namespace softmoe::experiments {

class GridProgress {
 public:
  // `selected` are the indices into outcome.runs that this session is about;
  // those that are finished already count as done, but not for the speed.
  GridProgress(const GridOutcome& outcome, const std::vector<size_t>& selected,
               ProgressOptions options = {});

  // A line that stays.
  void Note(const std::string& line);
  // Run `position` of `selected` starts, has done a step, has ended.
  void Begin(size_t position);
  void Step(const trainer::StepRecord& record);
  // Is measured after training; one call for every balance group.
  void Evaluating();
  void End(const RunOutcome& outcome);

  // Of the work of all selected runs, in [0, 1].
  double done() const;
  // Until the last run ends; infinite before a few steps are done.
  double seconds_left() const;

 private:
  struct Run {
    std::string name;  // as short as the grid allows
    Config config;
    int64_t log_every = 1;
    double flops_per_step = 0;
    bool finished_before = false;
    int64_t first_step = 0;  // done before this session
    int64_t step = 0;
  };

  std::string Place() const;  // "row 3/9 sparse-3"
  std::string Share() const;  // "grid 31%, 1m20 left"

  Progress output_;
  std::function<double()> clock_;  // seconds
  std::vector<Run> runs_;
  size_t current_ = 0;
  double start_ = 0;             // of the first run
  double run_start_ = 0;         // of the current one
  double seconds_per_step_ = 0;  // recent mean
  bool begun_ = false;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRID_PROGRESS_H_
