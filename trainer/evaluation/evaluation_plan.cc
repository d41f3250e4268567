// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation_plan.h"

#include <fmt/format.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::trainer {

void CheckEvaluationPlan(const EvaluationPlan& plan) {
  double previous = -1;
  for (const double factor : plan.inference_tau_factors) {
    if (!(factor >= 0) || !std::isfinite(factor)) {
      throw ConfigError(
          fmt::format("inference_tau_factors: {} is not a multiple of tau; use "
                      "finite numbers >= 0, as [0.5, 1, 1.5, 2]",
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
}

}  // namespace softmoe::trainer
