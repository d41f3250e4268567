// SPDX-License-Identifier: Apache-2.0
//
// miniature_quantity.h - the number that a measure takes from one run.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_QUANTITY_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_QUANTITY_H_

#include <cstddef>
#include <string>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// A value in the unit of the measure; `problem` says why the run has none, as a
// predicate ("gave no number"), and is "" otherwise.
struct QuantityValue {
  double value = 0;
  std::string problem;
};

// Problems: NaN or no number, any number of a run without a loss, logarithms of
// what is not positive, for kEarlyMovement an allocation that never moves, and
// for kHalvingCost no tau that halves the Infer-AE.
QuantityValue ReadQuantity(const MiniatureMeasure& measure,
                           const MiniatureRun& run);

// Share of the budget that has changed layers between start and end. The run
// must have an allocation.
double MovementOf(const MiniatureRun& run);

// Sum of the learning rates up to that share of the steps, linear between
// recorded steps. The run must have an allocation.
double LearningRateSum(const MiniatureRun& run, double share_of_steps);

// The least learning-rate sum with which budget logits can move as far as
// kEarlyMovement asks, if an update moves each by its learning rate: half of
// the logit difference after that share of the paper's movement, since late and
// early layers' logits move apart. Infinite if no logits give the paper's final
// share. The run must have an allocation.
double LearningRateNeeded(const MiniatureMeasure& measure,
                          const MiniatureRun& run);

// The smallest change of Kendall's tau: one exchange of neighbours among
// `layers` layers, at least two.
double DepthOrderStep(size_t layers);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_QUANTITY_H_
