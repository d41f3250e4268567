// SPDX-License-Identifier: Apache-2.0
#include "reference/schedules.h"

#include <cmath>

#include "core/errors.h"

namespace softmoe::reference {
namespace {

// (1 + cos(pi x)) / 2 = cos(pi x / 2)^2, which does not cancel near x = 1.
double HalfCosine(double x) {
  const double c = std::cos(M_PI / 2 * x);
  return c * c;
}

void CheckStep(const TrainingConfig& training, int64_t completed_updates) {
  SOFTMOE_CHECK(completed_updates >= 0 && completed_updates <= training.steps)
      << completed_updates << " completed updates of " << training.steps;
}

}  // namespace

double LearningRate(const TrainingConfig& training, int64_t completed_updates) {
  CheckStep(training, completed_updates);
  const double m = static_cast<double>(completed_updates);
  const double steps = static_cast<double>(training.steps);
  const double warmup = training.warmup_fraction * steps;
  if (m <= warmup && warmup > 0) return training.learning_rate * m / warmup;
  return training.min_learning_rate +
         (training.learning_rate - training.min_learning_rate) *
             HalfCosine((m - warmup) / (steps - warmup));
}

double Temperature(const Config& config, int64_t completed_updates) {
  CheckStep(config.training, completed_updates);
  const RouterConfig& router = config.router;
  if (router.kind == RouterKind::kSparse) return 1;
  return std::lerp(router.temperature_end, router.temperature_start,
                   HalfCosine(static_cast<double>(completed_updates) /
                              static_cast<double>(config.training.steps)));
}

}  // namespace softmoe::reference
