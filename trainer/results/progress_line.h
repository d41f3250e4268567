// SPDX-License-Identifier: Apache-2.0
//
// progress_line.h - one step as one line for people.
//
//   step 1200/18000 | loss 3.4127 | aux 0.102 | AE 1.61 (min 1.00@L1 max
//   2.90@L10) | k_l 1.00..2.70 | T 4.63 | gnorm 0.41 | lr 9.8e-04 | 385 ms |
//   163k tok/s | eta 1h48
#ifndef SOFTMOE_TRAINER_RESULTS_PROGRESS_LINE_H_
#define SOFTMOE_TRAINER_RESULTS_PROGRESS_LINE_H_

#include <cstdint>
#include <string>

#include "core/config/config.h"
#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// Returns the line of `record`. It omits T and k_l for the sparse router, which
// has neither, and the share of tokens without an expert if that is 0.
//
//   seconds_per_step  mean of the recent steps, for the remaining time
std::string ProgressLine(const Config& config, const StepRecord& record,
                         double seconds_per_step);

// Returns `count` with three digits: "873", "12.3k", "163k", "1.23M".
std::string ShortCount(double count);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_PROGRESS_LINE_H_
