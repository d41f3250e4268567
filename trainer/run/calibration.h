// SPDX-License-Identifier: Apache-2.0
//
// calibration.h - tau = "calibrated": chosen on the first training batches so
// that mean_active_experts experts are active on average, before any fallback
// (SPEC.md 2.3, DESIGN.md ruling 7).
#ifndef SOFTMOE_TRAINER_RUN_CALIBRATION_H_
#define SOFTMOE_TRAINER_RUN_CALIBRATION_H_

#include <cstdint>
#include <span>

#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "trainer/evaluation/validation.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

struct TauCalibration {
  double tau = 0;          // dimensionless
  int64_t num_ratios = 0;  // soft weights ranked
  int64_t rank = 0;        // how many of them lie above tau
  int64_t wanted = 0;      // how many should; `rank` differs where weights tie
};

// Returns tau for the (initial) parameters in `model`, at T(0), noise off.
//
// The largest max_active soft weights of every token and layer of the first
// calibration_batches training batches, each divided by k_l/num_experts, are
// ranked; tau is the midpoint between the n-th and the next, n =
// round(mean_active_experts * tokens * layers). The weights come from a forward
// pass with tau = 0, in which deeper layers see the output of a few more
// experts than with tau. So the mean of active experts that tau gives on these
// batches, before any fallback, is mean_active_experts to within half a weight
// in total for one layer, and close to it for several (at init_std 0.02 the
// experts' outputs are small compared with the residual stream). The router
// compares with tau k_l/num_experts rounded to float: if many weights are equal
// and the next ones are a float's last place away, as with scores that differ
// by 1e-5, it may leave them all out, and `rank` counts more than are active.
//
// All ratios are in memory at the same time: ResourceNeed::calibration_bytes
// (resources.h), which the plans of a run and of a grid show.
TauCalibration CalibrateTau(optimized::Model& model, const Dataset& data,
                            const StopPoll& poll);

// Does the same on several ranks, all of which must call it. Each processes its
// groups of every batch, and each ranks all weights.
TauCalibration CalibrateTau(optimized::Model& model, const Dataset& data,
                            optimized::Communicator& communicator,
                            const StopPoll& poll);

// The midpoint between two neighbors of a sorted list.
struct RankMidpoint {
  double midpoint = 0;  // of `larger` and `smaller`, in double
  float larger = 0;     // the rank-th largest value
  float smaller = 0;    // the next one, or 0 if there is none
  int64_t rank = 0;     // how many values lie above the midpoint
};

// Returns the midpoint between the rank-th and the (rank+1)-th largest value,
// with rank clamped to [1, number of values - 1]. If the two are equal, rank
// moves to the nearer end of the values that equal them, of zeros to the upper
// one (but never to 0), where a tau can lie. One such case is k = num_experts,
// where all weights are equal.
//
//   values   finite, >= 0; reordered by the call
// Errors     DivergedError for a negative or non-finite value; DataError for
//            fewer than two values.
RankMidpoint FindRankMidpoint(std::span<float> values, int64_t rank);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_CALIBRATION_H_
