// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/schedules.h"

#include <cmath>

#include "core/config/router_traits.h"
#include "core/errors.h"

namespace softmoe::trainer {
namespace {

// Falls from 1 at progress 0 to 0 at progress 1, along half a cosine.
double CosineDecay(double progress) {
  return 0.5 * (1.0 + std::cos(M_PI * progress));
}

}  // namespace

double LearningRate(const TrainingConfig& config, int64_t completed_updates) {
  SOFTMOE_CHECK(completed_updates >= 0 && completed_updates <= config.steps)
      << "completed_updates=" << completed_updates;
  const double m = static_cast<double>(completed_updates);
  const double steps = static_cast<double>(config.steps);
  const double warmup = config.warmup_fraction * steps;
  // Written so that a warm-up of 0 steps never divides by it.
  if (m < warmup) {
    return config.learning_rate * (m / warmup);
  }
  if (m == warmup) return config.learning_rate;
  return config.min_learning_rate +
         (config.learning_rate - config.min_learning_rate) *
             CosineDecay((m - warmup) / (steps - warmup));
}

double Temperature(const Config& config, int64_t completed_updates) {
  SOFTMOE_CHECK(completed_updates >= 0 &&
                completed_updates <= config.training.steps)
      << "completed_updates=" << completed_updates;
  if (!TraitsOf(config).temperature) return 1.0;
  const double start = config.router.temperature_start;
  const double end = config.router.temperature_end;
  // std::lerp is exact at both ends, however far apart they are.
  return std::lerp(end, start,
                   CosineDecay(static_cast<double>(completed_updates) /
                               static_cast<double>(config.training.steps)));
}

}  // namespace softmoe::trainer
