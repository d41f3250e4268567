// SPDX-License-Identifier: Apache-2.0
//
// evaluation_plan.h - what is measured on a run's final parameters after
// training, and whether they are kept. It is not part of a configuration or its
// hash, as a plan changes nothing about the training.
#ifndef SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_
#define SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace softmoe::trainer {

// The items of a task that are here.
struct ItemsOfTask {
  std::string sha256;  // TaskItems::sha256
  size_t count = 0;

  bool operator==(const ItemsOfTask&) const = default;
};

struct EvaluationPlan {
  // Validate with these multiples of the tau of training: finite, >= 0,
  // ascending, no duplicates. The sparse router has no tau: nothing is measured
  // for it.
  std::vector<double> inference_tau_factors = {};
  // Keep every layer's histogram of active experts at each of these tau; the
  // one at the tau of training is in every result.
  bool active_histogram = false;
  // Measure each layer's load entropy, dead experts, tokens at the cap and
  // without an expert, and truncated mass (RouterHealth in run_result.h).
  bool router_health = false;
  // Ask the items of these zero-shot tasks, with the tau of training and with
  // each of the others: names of TaskSplits() (task_items.h), each once.
  std::vector<std::string> tasks = {};
  // By task, the items that are here. Answers to other items count as missing,
  // unless they are answers to more items.
  std::map<std::string, ItemsOfTask> items_here = {};
  // Keep checkpoint.h5 once the result is written.
  bool keep_checkpoint = true;

  bool operator==(const EvaluationPlan&) const = default;
};

// Throws ConfigError that names the first invalid factor or task.
void CheckEvaluationPlan(const EvaluationPlan& plan);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_EVALUATION_PLAN_H_
