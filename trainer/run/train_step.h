// SPDX-License-Identifier: Apache-2.0
//
// train_step.h - one update on the batch of its index, and its record.
#ifndef SOFTMOE_TRAINER_RUN_TRAIN_STEP_H_
#define SOFTMOE_TRAINER_RUN_TRAIN_STEP_H_

#include <cstdint>
#include <vector>

#include "optimized/model.h"
#include "optimized/updater.h"
#include "trainer/results/run_result.h"
#include "trainer/tokens/batch_reader.h"
#include "trainer/tokens/dataset.h"

namespace softmoe::trainer {

// The outcome of an update, including the numbers whose maxima the run keeps.
struct StepOutcome {
  StepRecord record;
  int64_t max_active = 0;              // largest cap of a layer
  int64_t most_active_in_a_token = 0;  // largest active count
};

class TrainStep {
 public:
  // Keeps references to all arguments. While a step computes, the sequences of
  // the next step are read.
  TrainStep(const optimized::Model& model, optimized::Updater& updater,
            const Dataset& data);

  // Performs the update after `completed_updates`, on the batch with that index
  // and the schedules at that point. The global batch's balance groups are the
  // leaves of the gradient tree (DESIGN.md, ruling 6).
  //
  // Errors  DivergedError naming the step and the remedy if loss, a score or
  //         the gradient norm is not finite; parameters and moments are then
  //         as before.
  StepOutcome Run(int64_t completed_updates, double tau);

 private:
  const optimized::Model& model_;
  optimized::Updater& updater_;
  BatchReader data_;
  std::vector<int32_t> inputs_;  // of one group
  std::vector<int32_t> targets_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_TRAIN_STEP_H_
