// SPDX-License-Identifier: Apache-2.0
//
// train_state.h - everything that a run carries from step to step, except the
// tensors of model and optimizer.
#ifndef SOFTMOE_TRAINER_RESULTS_TRAIN_STATE_H_
#define SOFTMOE_TRAINER_RESULTS_TRAIN_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// A validation during training (training.eval_every), according to both
// readings of ruling 8.
struct EvaluationRecord {
  int64_t step = 0;        // completed updates
  double temperature = 0;  // T(m)
  // At T(m).
  double schedule_loss = 0;
  double schedule_active_experts = 0;
  // At T = 1.
  double loss = 0;
  double active_experts = 0;
  double zero_active_fraction = 0;
  double relative_load_variance = 0;
};

struct TrainState {
  // CodeVersion() of the programs that trained the run, separated by ", ".
  std::string code_version;
  int64_t step = 0;  // completed updates
  double tau = 0;    // 0 for the sparse router
  bool tau_calibrated = false;
  int64_t max_active = 0;  // largest cap of a layer so far
  // Largest active count so far, in steps and in validations at T = 1.
  int64_t most_active_in_a_token = 0;
  double seconds = 0;               // of all sessions
  std::vector<StepRecord> history;  // one per step
  std::vector<EvaluationRecord> evaluations;
};

// Train-AE (SPEC.md 5.2): the mean of active experts over all steps.
inline double TrainActiveExperts(const std::vector<StepRecord>& history) {
  if (history.empty()) return 0;
  double sum = 0;
  for (const StepRecord& record : history) sum += record.active_experts;
  return sum / static_cast<double>(history.size());
}

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_TRAIN_STATE_H_
