// SPDX-License-Identifier: Apache-2.0
//
// step_profile.h - one training step, operation by operation: how long each
// takes, at which rate, and how much of it is serial work and waiting.
#ifndef SOFTMOE_OPTIMIZED_STEP_PROFILE_H_
#define SOFTMOE_OPTIMIZED_STEP_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "core/profile.h"

namespace softmoe::optimized {

// A step with `threads` threads, and the most that so many can do.
struct StepProfile {
  int threads = 1;
  double peak_gflops = 0;     // kernels::PeakGflops
  double copy_gigabytes = 0;  // kernels::CopyGigabytes, per second
  std::vector<OperationTime> operations;

  double Seconds() const;
};

// Runs `step`, which must use `pool`, for at least a second, and returns the
// operations of the run that took the median time. `step` may throw.
StepProfile ProfileStep(ThreadPool& pool, const std::function<void()>& step);

// One line per operation, the longest first, and their sum. `all` and `one`
// profile the same step, `one` with one thread; there is no second half if
// `all` has one thread, too. `tokens` is the number of tokens of a step.
//
//   ms       of the step, all its calls together
//   rate     GFLOP/s or GB/s, of what the mathematics needs (OperationWork),
//            but attention's backward pass counts the scores again
//   peak     the rate's share of what the multipliers, or copying, reach; more
//            than 100 % of copying where the data is in a cache
//   serial   ms in which one thread works and the others have nothing to do
//   waits    ms that a thread waits for the others, mean over threads
std::string StepProfileTable(const StepProfile& all, const StepProfile& one,
                             int64_t tokens);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_STEP_PROFILE_H_
