// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/resources.h"

#include <fmt/core.h>

#include <system_error>

#include "core/config/parameter_layout.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "optimized/allocation.h"
#include "optimized/memory_plan.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::trainer {
namespace {

// Attributes, group headers and chunk indices: measured below 100 KiB.
constexpr int64_t kFileOverhead = int64_t{1} << 18;
// A number in metrics.jsonl with its key: at most 17 digits, sign, exponent.
constexpr int64_t kMetricsBytesPerNumber = 40;

int64_t NumbersPerStep(const ModelConfig& model) {
  int64_t numbers = 1;  // the step itself
  VisitStepMetrics([&](const Metric& metric, auto) {
    int64_t size = 1;
    for (const int64_t n : SizesOf(metric.shape, model)) size *= n;
    numbers += size;
  });
  return numbers;
}

// Validations while training, and the one at its end.
int64_t NumEvaluations(const TrainingConfig& training) {
  return 1 +
         (training.eval_every > 0 ? training.steps / training.eval_every : 0);
}

}  // namespace

ResourceNeed EstimateResources(const Config& config, int ranks) {
  ResourceNeed need;
  need.parameters = ParameterLayout(config).total;
  const int64_t numbers_per_step = NumbersPerStep(config.model);
  const int64_t history_numbers = config.training.steps * numbers_per_step;
  constexpr int64_t kNumbersPerEvaluation = sizeof(EvaluationRecord) / 8;
  const int64_t evaluation_numbers =
      NumEvaluations(config.training) * kNumbersPerEvaluation;
  need.checkpoint_bytes = 12 * need.parameters +
                          8 * (history_numbers + evaluation_numbers) +
                          kFileOverhead;
  need.disk_bytes =
      2 * need.checkpoint_bytes + 8 * history_numbers + kFileOverhead +
      (history_numbers + evaluation_numbers) * kMetricsBytesPerNumber;
  // For a checkpoint, rank 0 holds three more arrays, and every other rank one.
  need.state_bytes = ranks * (optimized::PlanModel(config, ranks).bytes() +
                              optimized::PlanUpdates(config, ranks).bytes()) +
                     4 * need.parameters * (3 + (ranks - 1));
  need.calibration_bytes = ranks * NumCalibrationRatios(config) *
                           static_cast<int64_t>(sizeof(float));
  return need;
}

int64_t NumCalibrationRatios(const Config& config) {
  if (!TraitsOf(config).cutoff || config.router.tau) return 0;
  int64_t ratios_per_token = 0;
  for (const optimized::LayerAllocation& layer :
       optimized::InitialAllocations(config, /*tau=*/0)) {
    ratios_per_token += layer.max_active;
  }
  return config.router.calibration_batches *
         config.training.global_batch_sequences * config.model.sequence_length *
         ratios_per_token;
}

void RequireDiskSpace(const Config& config,
                      const std::filesystem::path& folder) {
  int64_t need = EstimateResources(config).disk_bytes;
  for (const char* name : {kCheckpointName, kMetricsName, kResultName}) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(folder / name, missing);
    if (!missing) need -= static_cast<int64_t>(bytes);
  }
  const int64_t free = FreeDiskBytes(folder);
  if (need > free) {
    throw EnvironmentError(fmt::format(
        "{}: the run will write {} there, the disk has {} free; free some, or "
        "choose a folder on another disk with --out",
        folder.string(), FormatBytes(need), FormatBytes(free)));
  }
}

}  // namespace softmoe::trainer
