// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/initial_activity.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/philox.h"
#include "kernels/router.h"
#include "optimized/allocation.h"
#include "trainer/run/rank_midpoint.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

// [num_rows, num_experts]. The parameters of a run are drawn at step 0 of this
// stream; step 1 is free.
std::vector<float> DrawScores(const Config& config, int64_t num_rows,
                              bool noise) {
  const double deviation = InitialScoreDeviation(config, noise);
  // 16 deviations are more than Box-Muller can draw from 32 bits.
  if (!std::isfinite(static_cast<float>(16 * deviation))) {
    throw ConfigError(fmt::format(
        "router scores with weights of deviation {} would overflow before the "
        "first update; lower router.init_std or model.init_std",
        config.router_init_std()));
  }
  const RandomKey key = {.seed = static_cast<uint64_t>(config.training.seed),
                         .stream = RandomStream::kParameters,
                         .step = 1};
  std::vector<float> scores(
      static_cast<size_t>(num_rows * config.model.num_experts));
  for (size_t i = 0; i < scores.size(); i += 2) {
    const std::array<uint32_t, 4> words = PhiloxWords(key, i / 2);
    const std::array<double, 2> z = NormalsFromWords(words[0], words[1]);
    scores[i] = static_cast<float>(deviation * z[0]);
    if (i + 1 < scores.size()) {
      scores[i + 1] = static_cast<float>(deviation * z[1]);
    }
  }
  return scores;
}

// The routing before any fallback.
struct Routing {
  std::vector<int32_t> num_active;  // [rows]
  std::vector<float> gates;         // [rows, max_active]
};

Routing Route(const Config& config, const std::vector<float>& scores,
              const optimized::LayerAllocation& allocation,
              double temperature) {
  const int64_t experts = config.model.num_experts;
  const int64_t rows = static_cast<int64_t>(scores.size()) / experts;
  const int64_t cap = allocation.max_active;
  Routing routing = {.num_active = std::vector<int32_t>(rows),
                     .gates = std::vector<float>(rows * cap)};
  std::vector<float> soft_weights(scores.size()), root(2 * rows);
  std::vector<int32_t> selected(rows * cap);
  std::vector<double> probability_sums(experts);
  std::vector<double> scratch(kernels::RouterScratch(rows, experts));
  std::vector<int64_t> balance_counts(experts), active_counts(experts);
  int64_t bad_score = -1;
  kernels::RouterForwardArgs args = {};
  args.shape = {.num_tokens = rows,
                .num_experts = experts,
                .mode = config.router.kind == RouterKind::kSparse
                            ? kernels::RouterMode::kSparse
                            : kernels::RouterMode::kSoft,
                .balance = kernels::BalanceBasis::kScoresSoftmax,
                .mean_active = static_cast<float>(allocation.mean_active),
                .temperature = static_cast<float>(temperature),
                .cutoff = static_cast<float>(allocation.cutoff),
                .max_active = cap,
                .balance_top = allocation.balance_top,
                .fallback_top1 = false};
  args.scores = scores.data();
  args.soft_weights = soft_weights.data();
  args.root = root.data();
  args.num_active = routing.num_active.data();
  args.selected = selected.data();
  args.gates = routing.gates.data();
  args.probability_sums = probability_sums.data();
  args.balance_counts = balance_counts.data();
  args.active_counts = active_counts.data();
  args.bad_score = &bad_score;
  args.scratch = scratch.data();
  ThreadPool pool(1);
  kernels::RouterForward(args, pool);
  SOFTMOE_CHECK(bad_score < 0) << "score " << bad_score << " is not finite";
  return routing;
}

// As in trainer/run/calibration.h: from the rank of the mean active experts
// among the largest max_active weights of each row, in units of the uniform
// weight.
double CalibratedTau(const Config& config, int64_t num_rows) {
  const std::vector<float> scores =
      DrawScores(config, num_rows, /*noise=*/false);
  const optimized::LayerAllocation all =
      optimized::InitialAllocations(config, /*tau=*/0).front();
  Routing routing = Route(config, scores, all, trainer::Temperature(config, 0));
  const double uniform =
      all.mean_active / static_cast<double>(config.model.num_experts);
  for (float& gate : routing.gates) {
    gate = static_cast<float>(gate / uniform);
  }
  const double rows = static_cast<double>(num_rows);
  return trainer::FindRankMidpoint(
             routing.gates,
             std::llround(config.router.mean_active_experts * rows))
      .midpoint;
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
                                        int64_t completed_updates,
                                        int64_t num_rows) {
  SOFTMOE_CHECK(num_rows > 1) << num_rows << " rows";
  InitialActivity activity;
  if (config.router.kind == RouterKind::kSparse) {
    activity.active_experts = config.router.mean_active_experts;
    return activity;
  }
  activity.tau =
      config.router.tau ? *config.router.tau : CalibratedTau(config, num_rows);
  const std::vector<float> scores =
      DrawScores(config, num_rows, /*noise=*/true);
  const Routing routing =
      Route(config, scores,
            optimized::InitialAllocations(config, activity.tau).front(),
            trainer::Temperature(config, completed_updates));
  const bool fallback = config.router.fallback == Fallback::kTop1;
  double sum = 0, squares = 0, none = 0;
  for (const int32_t above : routing.num_active) {
    const double active = fallback && above == 0 ? 1 : above;
    sum += active;
    squares += active * active;
    none += above == 0;
  }
  const double rows = static_cast<double>(num_rows);
  activity.active_experts = sum / rows;
  activity.zero_active_fraction = none / rows;
  const double variance = (squares - sum * sum / rows) / (rows - 1);
  activity.standard_error = std::sqrt(variance / rows);
  return activity;
}

}  // namespace softmoe::experiments
