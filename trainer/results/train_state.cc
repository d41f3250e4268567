// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

double TrainActiveExperts(const std::vector<StepRecord>& history) {
  if (history.empty()) return 0;
  double sum = 0;
  for (const StepRecord& record : history) sum += record.active_experts;
  return sum / static_cast<double>(history.size());
}

}  // namespace softmoe::trainer
