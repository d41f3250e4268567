// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/final_checkpoint.h"

#include <fmt/core.h>

#include "trainer/identity/run_identity.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_digest.h"
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

std::string WhyNotFinal(const RunResult& result, const Checkpoint& checkpoint) {
  const TrainState& state = checkpoint.state();
  if (!CompareIdentities(result.identity, checkpoint.identity()).empty()) {
    return "the checkpoint is of another run than the result";
  }
  if (state.step != result.config.training.steps) {
    return fmt::format("the checkpoint is of step {} of {}", state.step,
                       result.config.training.steps);
  }
  RunResult trained;  // with what both have; SameMetrics ignores the rest
  trained.tau = state.tau;
  trained.steps = state.history;
  if (!SameMetrics(trained, result,
                   [](const Metric& metric) { return !metric.clock; })) {
    return "the checkpoint is of another training of this run than the result: "
           "tau or metrics of steps differ";
  }
  return "";
}

}  // namespace softmoe::trainer
