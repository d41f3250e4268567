// SPDX-License-Identifier: Apache-2.0
//
// initial_activity.h - how many experts a router activates before anything is
// learnt, estimated without a model, a corpus or a step of training.
//
// A router score is x W_r: x comes out of RMSNorm with gain one, W_r is drawn
// from N(0, s^2), s = router.init_std or model.init_std
// (optimized/initialize.h). Given x, the scores of a token are therefore
// independent N(0, s^2 |x|^2), and
//   |x|^2 = d_model * v / (v + norm_epsilon),   v = mean square of the residual
// v = model.init_std^2 after the embedding. Attention and experts add to the
// stream and raise v, so norm_epsilon matters less in deeper layers. This is
// neglected (at the paper's sizes at most 1.2 % of the scores' deviation).
#ifndef SOFTMOE_EXPERIMENTS_PLAN_INITIAL_ACTIVITY_H_
#define SOFTMOE_EXPERIMENTS_PLAN_INITIAL_ACTIVITY_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::experiments {

struct InitialActivity {
  double tau = 0;  // in force; expected if calibrated; 0 for sparse
  // Defined in trainer/results/metrics.h.
  double active_experts = 0;
  double zero_active_fraction = 0;
};

// Standard deviation of a router score at initialisation; `noise` adds the
// configuration's training noise.
double InitialScoreDeviation(const Config& config, bool noise);

// The experts that the step after `completed_updates` would activate if the
// router had learnt nothing, by quadrature (golden/paper/still_scores.h): T(m),
// cutoff, cap and fallback of the configuration. tau = "calibrated" is
// calibrated on scores without noise, as the trainer does on its first batches.
// Sparse routers activate exactly k experts. Throws ConfigError if scores of
// this size overflow.
InitialActivity EstimateInitialActivity(const Config& config,
                                        int64_t completed_updates = 0);

// A run whose scores keep their initial spread, and whose layers keep their
// allocation.
struct StillRun {
  InitialActivity middle;  // halfway between the temperatures
  InitialActivity end;     // final T, without noise: Infer-AE
  InitialActivity train;   // mean over all steps: Train-AE
};

// Estimates the run from `start`, the EstimateInitialActivity(config), and
// throws what that throws. The router must not be sparse.
StillRun EstimateStillRun(const Config& config, const InitialActivity& start);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_PLAN_INITIAL_ACTIVITY_H_
