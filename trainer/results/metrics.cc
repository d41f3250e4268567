// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics.h"

#include <fmt/core.h>

#include "core/errors.h"

namespace softmoe::trainer {

std::string ShownNumber(const Metric& metric, double value) {
  return fmt::format(fmt::runtime(fmt::format("{{:{}}}", metric.format)),
                     value * metric.scale);
}

std::string Shown(const Metric& metric, double value) {
  return ShownNumber(metric, value) + metric.shown_unit;
}

std::string Titled(const Metric& metric, double value) {
  return fmt::format("{} {}", metric.title, Shown(metric, value));
}

std::string ReportLine(const Metric& metric, double value) {
  const std::string unit = metric.unit;
  const bool in_unit = metric.scale == 1 && *metric.shown_unit == '\0';
  return fmt::format("{:<22}{}{}\n", metric.title, Shown(metric, value),
                     in_unit && unit != "1" ? " " + unit : "");
}

std::vector<int64_t> SizesOf(MetricShape shape, const ModelConfig& model) {
  switch (shape) {
    case MetricShape::kNumber:
      return {};
    case MetricShape::kLayers:
      return {model.num_layers};
    case MetricShape::kLayersAndCounts:
      return {model.num_layers, model.num_experts + 1};
    case MetricShape::kLayersAndExperts:
      return {model.num_layers, model.num_experts};
    case MetricShape::kMeasures:
      return {kNumTaskMeasures};
  }
  throw InternalError(fmt::format("shape {}", static_cast<int>(shape)));
}

}  // namespace softmoe::trainer
