// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/mini_claims.h"

#include <algorithm>

#include "core/config/config_enums.h"
#include "core/config/router_traits.h"
#include "experiments/run/run_record.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

// Both the name of grids/mini.toml and its scale.
constexpr char kMini[] = "mini";

// A step uses the k_l left by the updates before it.
std::vector<golden::AllocationPoint> AllocationOf(
    const trainer::RunResult& result) {
  std::vector<golden::AllocationPoint> points;
  for (const trainer::StepRecord& step : ThinnedSteps(result.steps)) {
    points.push_back({step.step - 1, step.allocation});
  }
  points.push_back({result.config.training.steps, result.allocation});
  double sum = 0;
  int64_t updates = 0;
  for (golden::AllocationPoint& point : points) {
    for (; updates < point.step; ++updates) {
      sum += trainer::LearningRate(result.config.training, updates);
    }
    point.learning_rate_sum = sum;
  }
  return points;
}

// The mean cap by the final k_l.
double MeanCapOf(const trainer::RunResult& result) {
  double sum = 0;
  for (const double k : result.allocation) {
    sum += static_cast<double>(MaxActive(result.config, k));
  }
  return sum / static_cast<double>(result.allocation.size());
}

golden::TauPoint PointAt(double factor, const trainer::Validation& validation) {
  return {.factor = factor,
          .infer_ae = validation.active_experts,
          .loss = validation.loss};
}

// Includes the trained tau, whether or not the plan listed it.
std::vector<golden::TauPoint> TauPointsOf(const trainer::RunResult& result) {
  std::vector<golden::TauPoint> points;
  if (!result.final_evaluations) return points;
  for (const trainer::InferenceTau& at :
       result.final_evaluations->inference_tau) {
    points.push_back(PointAt(at.factor, at.validation));
  }
  const auto trained =
      std::ranges::lower_bound(points, 1.0, {}, &golden::TauPoint::factor);
  if (!points.empty() && (trained == points.end() || trained->factor != 1)) {
    points.insert(trained, PointAt(1, result.final_validation));
  }
  return points;
}

}  // namespace

bool IsMiniature(const Grid& grid) {
  const bool main =
      grid.experiment.empty() || grid.experiment == ExperimentNames().front();
  return main && grid.name == kMini && grid.scale == kMini &&
         std::ranges::all_of(grid.overrides, [](const std::string& set) {
           return set.starts_with("runtime.");
         });
}

golden::MiniatureRun MiniatureRunOf(const GridRun& run,
                                    const trainer::RunResult& result) {
  golden::MiniatureRun one;
  one.row = run.row.id;
  one.corpus = run.corpus.id;
  one.seed = run.seed;
  one.loss = result.final_validation.loss;
  one.infer_ae = result.final_validation.active_experts;
  one.mean_cap = MeanCapOf(result);
  if (TraitsOf(result.config).lapsum) {
    one.load_balance = EnumName(result.config.router.load_balance);
  }
  one.train_ae = result.train_ae;
  one.load_variance = result.final_validation.relative_load_variance;
  if (TraitsOf(result.config).learned_budget) {
    one.allocation = AllocationOf(result);
  }
  one.at_tau = TauPointsOf(result);
  return one;
}

std::optional<MiniClaims> JudgeMiniClaims(const GridOutcome& outcome) {
  if (!IsMiniature(outcome.grid)) return std::nullopt;
  MiniClaims judged;
  judged.claims = golden::LoadMiniatureClaims();
  for (const RunOutcome& run : outcome.runs) {
    if (run.state != RunState::kFinished) continue;
    const std::vector<int64_t>* seeds =
        judged.claims.PlannedSeeds(run.run.row.id, run.run.corpus.id);
    if (seeds == nullptr ||
        std::ranges::find(*seeds, run.run.seed) == seeds->end()) {
      judged.unplanned.push_back(run.run.id);
    } else {
      judged.results.runs.push_back(MiniatureRunOf(run.run, *run.result));
    }
  }
  judged.results.throughput = outcome.throughput;
  const golden::EarlierClaims* recorded_under = nullptr;
  if (!outcome.margins_sha256.empty()) {
    recorded_under = golden::RecordedUnder(
        judged.claims, outcome.margins_sha256, "the record of these runs");
  }
  judged.verdicts =
      golden::JudgeMiniature(judged.claims, judged.results, recorded_under);
  return judged;
}

}  // namespace softmoe::experiments
