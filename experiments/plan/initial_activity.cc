// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/initial_activity.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "golden/paper/still_scores.h"
#include "optimized/allocation.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

// The first layer's router at T(0) with this tau, or a calibrated one; all
// other layers start with the same.
golden::StillScores RouterOf(const Config& config, std::optional<double> tau) {
  const double deviation = InitialScoreDeviation(config, /*noise=*/true);
  // Scores are floats. About one in 1e57 normal variates exceeds 16 deviations.
  if (!std::isfinite(static_cast<float>(16 * deviation))) {
    throw ConfigError(fmt::format(
        "router scores with weights of deviation {} would overflow before the "
        "first update; lower router.init_std or model.init_std",
        config.router_init_std()));
  }
  const optimized::LayerAllocation layer =
      optimized::InitialAllocations(config, /*tau=*/0).front();
  golden::StillScores scores = {
      .num_experts = config.model.num_experts,
      .mean_active = layer.mean_active,
      .max_active = layer.max_active,
      .tau = 0,
      .temperature = trainer::Temperature(config, 0),
      .spread = InitialScoreDeviation(config, /*noise=*/false),
      .fallback_top1 = config.router.fallback == Fallback::kTop1};
  scores.tau = tau ? *tau : golden::CalibratedTau(scores);
  scores.spread = deviation;
  return scores;
}

InitialActivity FromStill(const golden::StillActivity& activity, double tau) {
  return {.tau = tau,
          .active_experts = activity.active_experts,
          .zero_active_fraction = activity.zero_active_fraction};
}

}  // namespace

double InitialScoreDeviation(const Config& config, bool noise) {
  const ModelConfig& m = config.model;
  const double residual = m.init_std * m.init_std;
  const double weight = config.router_init_std() * config.router_init_std();
  double variance = static_cast<double>(m.d_model) * weight * residual /
                    (residual + m.norm_epsilon);
  if (!noise) return std::sqrt(variance);
  const double amplitude = config.router.noise_amplitude;
  switch (config.router.noise) {
    case NoiseKind::kNone:
      break;
    case NoiseKind::kInputJitter:  // factors uniform in 1 +- amplitude
      variance *= 1 + amplitude * amplitude / 3;
      break;
    case NoiseKind::kLogitGauss:
      variance += amplitude * amplitude;
      break;
  }
  return std::sqrt(variance);
}

InitialActivity EstimateInitialActivity(const Config& config,
                                        int64_t completed_updates) {
  if (TraitsOf(config).exact_k) {
    return {.active_experts = config.router.mean_active_experts};
  }
  golden::StillScores scores = RouterOf(config, config.router.tau);
  scores.temperature = trainer::Temperature(config, completed_updates);
  return FromStill(golden::ActivityOf(scores), scores.tau);
}

StillRun EstimateStillRun(const Config& config, const InitialActivity& start) {
  SOFTMOE_CHECK(!TraitsOf(config).exact_k) << "a sparse router activates k";
  const golden::StillScores router = RouterOf(config, start.tau);
  const double first = trainer::Temperature(config, 0);
  const double last = trainer::Temperature(config, config.training.steps);
  golden::StillScores middle = router, quiet = router;
  middle.temperature = (first + last) / 2;
  quiet.spread = InitialScoreDeviation(config, /*noise=*/false);
  quiet.temperature = last;
  return {.middle = FromStill(golden::ActivityOf(middle), router.tau),
          .end = FromStill(golden::ActivityOf(quiet), router.tau),
          .train = FromStill(
              golden::MeanActivity(router, first, last, config.training.steps),
              router.tau)};
}

}  // namespace softmoe::experiments
