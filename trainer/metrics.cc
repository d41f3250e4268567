// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics.h"

#include <fmt/format.h>

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

std::string ColumnTitle(const Metric& metric) {
  const std::string unit = metric.shown_unit;
  if (unit.empty()) return metric.title;
  return fmt::format("{}{}{}", metric.title, unit[0] == ' ' ? "" : " ", unit);
}

std::string NameIn(uint32_t version, const Metric& metric) {
  const std::string before = metric.name_in_version_2;
  return version == 2 && !before.empty() ? before : metric.name;
}

}  // namespace softmoe::trainer
