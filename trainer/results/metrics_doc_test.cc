// SPDX-License-Identifier: Apache-2.0
//
// METRICS.md agrees with the code: its tables are those of metrics.h.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {
namespace {

// Returns "[num_layers, num_experts]", ...; "" for one number.
std::string ShapeName(MetricShape shape) {
  switch (shape) {
    case MetricShape::kNumber:
      return "";
    case MetricShape::kLayers:
      return "[num_layers]";
    case MetricShape::kLayersAndCounts:
      return "[num_layers, num_experts + 1]";
    case MetricShape::kLayersAndExperts:
      return "[num_layers, num_experts]";
    case MetricShape::kMeasures:
      return "[4]";
  }
  throw InternalError(fmt::format("shape {}", static_cast<int>(shape)));
}

std::string Row(const Metric& metric) {
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", metric.name,
                     metric.title, metric.unit, ShapeName(metric.shape),
                     metric.definition);
}

// The tables of METRICS.md: from the heading of a section to its end.
class Tables {
 public:
  Tables() : doc_(ReadWholeFile(RunfilePath("trainer/METRICS.md"))) {}

  template <typename Visit>
  void Expect(const std::string& heading, Visit&& visit) const {
    std::string table =
        "| name | title | unit | shape | what |\n"
        "|-|-|-|-|-|\n";
    visit([&](const Metric& metric, auto) { table += Row(metric); });
    const size_t begin = doc_.find("\n## " + heading + "\n");
    ASSERT_NE(begin, std::string::npos) << heading;
    const std::string section =
        doc_.substr(begin, doc_.find("\n## ", begin + 1) - begin);
    const size_t at = section.find("\n|");
    EXPECT_EQ(at == std::string::npos ? "" : section.substr(at + 1), table)
        << "the table under '" << heading << "' must end its section and be:\n"
        << table;
  }

 private:
  const std::string doc_;
};

TEST(MetricsDoc, HasTheTablesOfTheCode) {
  const Tables tables;
  tables.Expect("A training step",
                [](auto&& visit) { VisitStepMetrics(visit); });
  tables.Expect("A validation",
                [](auto&& visit) { VisitValidationMetrics(visit); });
  tables.Expect("A validation during training",
                [](auto&& visit) { VisitEvaluationMetrics(visit); });
  tables.Expect("A run", [](auto&& visit) { VisitRunMetrics(visit); });
  tables.Expect("A router after training",
                [](auto&& visit) { VisitHealthMetrics(visit); });
  tables.Expect("Zero-shot answers after training",
                [](auto&& visit) { VisitAnswerMetrics(visit); });
}

}  // namespace
}  // namespace softmoe::trainer
