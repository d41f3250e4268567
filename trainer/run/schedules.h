// SPDX-License-Identifier: Apache-2.0
//
// schedules.h - learning rate and temperature over a run (SPEC.md 4).
//
// Both are functions of m, the number of completed updates. The first update
// uses m = 0; with a warm-up, its rate is 0 and it only fills Adam's moments.
// Mirrors reference/schedules.h: property_tests/optimizer_oracle_test.cc holds
// the two together.
#ifndef SOFTMOE_TRAINER_RUN_SCHEDULES_H_
#define SOFTMOE_TRAINER_RUN_SCHEDULES_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::trainer {

// The learning rate of the update after `completed_updates`, in [0, steps]:
// linear from 0 to the peak over W = warmup_fraction*steps (a real number),
// then a cosine from the peak to the minimum at `steps`. W = 0: no warm-up.
double LearningRate(const TrainingConfig& config, int64_t completed_updates);

// T(m) = T_end + (T_start - T_end) (1 + cos(pi m / steps)) / 2, in score units.
// 1 for the sparse router, which has no temperature.
double Temperature(const Config& config, int64_t completed_updates);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_SCHEDULES_H_
