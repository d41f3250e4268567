// SPDX-License-Identifier: Apache-2.0
//
// schedules.h - learning rate and temperature over a run (reference).
//
//   lr(m) = peak m/W                                              if m <= W
//           min + (peak - min) (1 + cos(pi (m-W)/(N-W))) / 2      otherwise
//   T(m)  = T_end + (T_start - T_end) (1 + cos(pi m/N)) / 2       SPEC.md 4
//
// m counts completed updates, N = steps, W = warmup_fraction N (a real number).
// So the first update has learning rate 0 and only fills Adam's moments.
#ifndef SOFTMOE_REFERENCE_SCHEDULES_H_
#define SOFTMOE_REFERENCE_SCHEDULES_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::reference {

// Learning rate of the update after `completed_updates` in [0, steps]. Without
// warm-up (W = 0) lr(0) is the peak. Errors: InternalError outside the run.
double LearningRate(const TrainingConfig& training, int64_t completed_updates);

// Temperature (score units) after `completed_updates` in [0, steps]; 1 for the
// sparse router, which has none. Errors: InternalError outside the run.
double Temperature(const Config& config, int64_t completed_updates);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_SCHEDULES_H_
