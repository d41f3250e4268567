// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/run_columns.h"

#include <fmt/core.h>

#include <cstring>
#include <limits>
#include <optional>

#include "core/errors.h"
#include "experiments/grids/cost_model.h"

namespace softmoe::experiments {

using trainer::Metric;
using trainer::RunResult;
namespace metrics = trainer::metrics;

namespace {

double OrNan(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

const std::vector<RunColumn>& RunColumns() {
  static const std::vector<RunColumn> columns = {
      {metrics::kTau, [](const RunResult& r) { return r.tau; }},
      {metrics::kTrainAe, [](const RunResult& r) { return r.train_ae; }, true},
      {metrics::kInferAe,
       [](const RunResult& r) { return r.final_validation.active_experts; },
       true},
      {metrics::kActiveParameters,
       [](const RunResult& r) {
         return ActiveParameters(r.config.model,
                                 r.final_validation.active_experts);
       },
       true},
      {metrics::kValLoss,
       [](const RunResult& r) { return r.final_validation.loss; }, true},
      {metrics::kUnigramLoss, [](const RunResult& r) { return r.unigram_loss; },
       true},
      {metrics::kTrainBytesPerToken,
       [](const RunResult& r) { return OrNan(r.train_bytes_per_token); }},
      {metrics::kValBytesPerToken,
       [](const RunResult& r) { return OrNan(r.val_bytes_per_token); }},
      {metrics::kValLossPerByte,
       [](const RunResult& r) { return OrNan(r.val_loss_per_byte); }},
      {metrics::kScheduleLoss,
       [](const RunResult& r) { return r.at_schedule_temperature.loss; }},
      {metrics::kZeroActiveFraction,
       [](const RunResult& r) {
         return r.final_validation.zero_active_fraction;
       },
       true},
      {metrics::kRelativeLoadVariance,
       [](const RunResult& r) {
         return r.final_validation.relative_load_variance;
       }},
      {metrics::kParameters,
       [](const RunResult& r) { return static_cast<double>(r.parameters); }},
      {metrics::kRunSeconds, [](const RunResult& r) { return r.seconds; }},
  };
  return columns;
}

const RunColumn& ColumnOf(const Metric& metric) {
  for (const RunColumn& column : RunColumns()) {
    if (std::strcmp(column.metric.name, metric.name) == 0) return column;
  }
  throw InternalError(fmt::format("no report has {}", metric.name));
}

std::string Legend(const Metric& metric) {
  const std::string unit = metric.unit;
  return fmt::format("{}{}: {}", metric.title,
                     unit == "1" ? "" : " (" + unit + ")", metric.definition);
}

}  // namespace softmoe::experiments
