// SPDX-License-Identifier: Apache-2.0
//
// validation.h - loss and routing on the held-out split (SPEC.md 5.2).
#ifndef SOFTMOE_TRAINER_EVALUATION_VALIDATION_H_
#define SOFTMOE_TRAINER_EVALUATION_VALIDATION_H_

#include <functional>
#include <span>
#include <vector>

#include "optimized/communicator/communicator.h"
#include "optimized/model.h"
#include "trainer/results/run_result.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

// Called between batches of a long loop; throws StoppedError to leave it.
using StopPoll = std::function<void()>;
// Called on all ranks once each has passed over a balance group, with the
// reports of the passes in the order of the groups: rank r's own is the r-th,
// if there is one.
using GroupObserver =
    std::function<void(std::span<const optimized::StepStats>)>;

// The routing of each layer in the last pass; valid until the next one.
std::vector<optimized::RoutingView> LastRouting(optimized::Model& model);

// Returns how many held-out sequences Validate reads: training.eval_sequences,
// or all if that is 0 or there are fewer.
int64_t NumEvaluated(const Config& config, const Dataset& data);

// Loss and active experts of `model` on the first eval_sequences sequences of
// the held-out split (0: all), noise off, in groups of
// balance_group_sequences.
//
//   tau          that of training, or another one for the inference ablation
//   temperature  1 for the numbers of the tables, T(m) for training curves
//   observe      empty, or called for every group
// Errors   DataError if nothing is held out; DivergedError if the loss is not
//          finite.
Validation Validate(optimized::Model& model, const Dataset& data, double tau,
                    double temperature, const StopPoll& poll,
                    const GroupObserver& observe = {});

// Does the same on several ranks, which must all call it and all get the whole
// result: each takes every size-th group, and what they count is added in the
// order of the groups, so that the bits are those of one rank.
Validation Validate(optimized::Model& model, const Dataset& data, double tau,
                    double temperature, optimized::Communicator& communicator,
                    const StopPoll& poll, const GroupObserver& observe = {});

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_VALIDATION_H_
