// SPDX-License-Identifier: Apache-2.0
//
// evaluation_plan.h - what is measured on a run's final parameters once it is
// trained, and whether they stay. No part of a configuration and its hash: a
// plan changes nothing that is trained.
#ifndef SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_
#define SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_

#include <vector>

namespace softmoe::trainer {

struct EvaluationPlan {
  // Validation with these multiples of the tau of training: finite, >= 0,
  // ascending, none twice. The sparse router has no tau: nothing is measured
  // for it.
  std::vector<double> inference_tau_factors;
  // Keep the histogram of active experts of every layer at each of these tau;
  // that at the tau of training is in every result.
  bool active_histogram = false;
  // Load entropy, dead experts, tokens at the cap and without an expert,
  // truncated mass; of every layer (RouterHealth in trainer.h).
  bool router_health = false;
  // checkpoint.h5 stays once the result is written.
  bool keep_checkpoint = true;

  bool operator==(const EvaluationPlan&) const = default;
};

// Throws ConfigError that names the first factor which cannot be meant.
void CheckEvaluationPlan(const EvaluationPlan& plan);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_
