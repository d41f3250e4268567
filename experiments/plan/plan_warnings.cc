// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "core/config/config_enums.h"
#include "core/text/text_table.h"
#include "experiments/plan/plan_numbers.h"
#include "experiments/plan/rank_plan.h"
#include "trainer/results/metrics.h"
#include "trainer/run/schedules.h"

namespace softmoe::experiments {
namespace {

// Below this, experts hardly train (DESIGN.md, ruling 7).
constexpr double kFewActiveExperts = 0.5;
constexpr int64_t kScheduleSamples = 50;

// Share of the steps after which the falling temperature alone, without
// learning, raises the mean of active experts to kFewActiveExperts, rounded up
// to 1/kScheduleSamples; above 1 if it never does.
double ShareOfStepsUntilActive(const Config& config) {
  for (int64_t i = 1; i <= kScheduleSamples; ++i) {
    const int64_t updates = config.training.steps * i / kScheduleSamples;
    if (EstimateInitialActivity(config, updates).active_experts >=
        kFewActiveExperts) {
      return static_cast<double>(i) / kScheduleSamples;
    }
  }
  return 2;
}

std::string ActivityProblem(const RowEstimate& row) {
  const InitialActivity& initial = row.initial;
  if (!(initial.active_experts < kFewActiveExperts)) return "";
  const RouterConfig& router = row.run.config.router;
  std::string problem = fmt::format(
      "with tau = {:.4g} at T = {:.4g}, {:.3g} experts are active on average "
      "at the start ({}): experts get {} gradient. ",
      initial.tau, trainer::Temperature(row.run.config, 0),
      std::round(1e4 * initial.active_experts) / 1e4,
      Titled(trainer::metrics::kZeroActiveFraction,
             initial.zero_active_fraction),
      initial.active_experts < 0.005 ? "no" : "little");
  const double share = ShareOfStepsUntilActive(row.run.config);
  problem +=
      share <= 1
          ? fmt::format(
                "As T falls, scores that never change would reach {} after "
                "about {:.0f} % of the steps. ",
                kFewActiveExperts, 100 * share)
          : "Scores that never change stay below that to the end. ";
  return problem + (router.tau ? "router.tau = \"calibrated\" or "
                                 "router.fallback = \"top1\" would avoid it"
                               : "router.fallback = \"top1\" would avoid it");
}

std::string BatchProblem(const RowEstimate& row) {
  const int64_t gpus = row.run.corpus.gpus;
  return gpus == 0 ? "" : SplitBatch(row.run.config.training, gpus).problem;
}

std::string MemoryProblem(const RowEstimate& row, const Cluster& cluster) {
  const int64_t gpus = row.run.corpus.gpus;
  if (gpus == 0 || !BatchProblem(row).empty()) return "";
  const Config& config = row.run.config;
  const auto need = static_cast<double>(
      RankMemory(config, gpus, row.run.runtime.recompute).bytes());
  if (need <= cluster.gpu_bytes) return "";
  const auto fits = RecomputeThatFits(config, gpus, cluster.gpu_bytes);
  return fmt::format(
      "needs {:.1f} GiB on each GPU, which has {:.1f} (cluster.gpu_bytes); {}",
      need / kGibibyte, cluster.gpu_bytes / kGibibyte,
      fits ? fmt::format("runtime.recompute = \"{}\" makes it fit",
                         EnumName(*fits))
           : "no runtime.recompute makes it fit: lower "
             "training.balance_group_sequences (which changes the "
             "load-balancing loss), or take more GPUs");
}

}  // namespace

std::vector<std::string> PlanWarnings(const Grid& grid,
                                      const std::vector<RowEstimate>& rows,
                                      int64_t free_disk_bytes) {
  // Problems with the rows that have them, ordered by first row.
  std::vector<std::pair<std::string, std::vector<std::string>>> problems;
  for (const RowEstimate& row : rows) {
    for (const std::string& problem : {ActivityProblem(row), BatchProblem(row),
                                       MemoryProblem(row, grid.cluster)}) {
      if (problem.empty()) continue;
      auto known = problems.begin();
      while (known != problems.end() && known->first != problem) ++known;
      if (known == problems.end()) {
        problems.push_back({problem, {}});
        known = problems.end() - 1;
      }
      known->second.push_back(row.run.corpus.id + "/" + row.run.row.id);
    }
  }
  std::vector<std::string> warnings;
  warnings.reserve(problems.size() + 1);
  for (const auto& [problem, where] : problems) {
    warnings.push_back(fmt::format("{}: {}", fmt::join(where, ", "), problem));
  }
  const int64_t need = Total(rows).disk_bytes;
  if (need > free_disk_bytes) {
    warnings.push_back(fmt::format(
        "all runs together will write up to {}, the disk has {} free; choose a "
        "folder on another disk with --out",
        FormatBytes(need), FormatBytes(free_disk_bytes)));
  }
  return warnings;
}

}  // namespace softmoe::experiments
