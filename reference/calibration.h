// SPDX-License-Identifier: Apache-2.0
//
// calibration.h - the tau with which a fresh model activates k experts on
// average (SPEC.md 2.3 (i); DESIGN.md, ruling 7).
//
// An expert is active when its ratio p/(k_l/E) exceeds tau and it is within the
// cap. So tau lies between the n-th and the (n+1)-th largest ratio of all
// capped experts, n = round(k * tokens * layers).
#ifndef SOFTMOE_REFERENCE_CALIBRATION_H_
#define SOFTMOE_REFERENCE_CALIBRATION_H_

#include <cstdint>
#include <vector>

#include "reference/matrix.h"
#include "reference/router.h"

namespace softmoe::reference {

// Returns the ratios p/(k_l/E) of the max_active experts with the largest
// scores of each token of one layer: tokens*max_active numbers.
// `settings.temperature` is T(0); the cutoff is not read.
std::vector<double> CalibrationRatios(const RouterSettings& settings,
                                      const Matrix& scores);

// Returns tau, the midpoint between the n-th and the (n+1)-th largest ratio. If
// both are equal, no tau has n ratios above it, and n moves to an end of the
// run of ratios that equal them: to its start if that is nearer, or if they are
// 0, but never to n = 0; otherwise to its end (past the last ratio, 0 follows).
//
//   ratios               of all tokens and layers of the calibration batches
//   mean_active_experts  k
//   num_tokens           tokens times layers
// n is clamped to [1, count-1]. Errors: ConfigError for fewer than two ratios.
double CalibrateTau(std::vector<double> ratios, double mean_active_experts,
                    int64_t num_tokens);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_CALIBRATION_H_
