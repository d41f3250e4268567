// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation_plan.h"

#include <fmt/core.h>

#include <cmath>
#include <set>

#include "core/errors.h"
#include "trainer/tasks/task_items.h"

namespace softmoe::trainer {

void CheckEvaluationPlan(const EvaluationPlan& plan) {
  double previous = -1;
  for (const double factor : plan.inference_tau_factors) {
    if (!(factor >= 0) || !std::isfinite(factor)) {
      throw ConfigError(
          fmt::format("inference_tau_factors: {} is not a multiple of tau; use "
                      "finite numbers >= 0, such as [0.5, 1, 1.5, 2]",
                      factor));
    }
    if (!(factor > previous)) {
      throw ConfigError(
          fmt::format("inference_tau_factors: {} comes after {}; list each "
                      "factor once, in ascending order",
                      factor, previous));
    }
    previous = factor;
  }
  std::set<std::string> names;
  for (const std::string& name : plan.tasks) {
    if (names.insert(FindTaskSplit(name).name).second) continue;
    throw ConfigError(
        fmt::format("tasks: {} twice; list each task once", name));
  }
}

}  // namespace softmoe::trainer
