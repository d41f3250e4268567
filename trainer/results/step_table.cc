// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/step_table.h"

#include <fmt/core.h>

#include "core/errors.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_hdf5.h"

namespace softmoe::trainer {
namespace {

// Writes the columns of `records` that visit_metrics lists, and their steps.
template <typename Records, typename Visit>
void Write(const Records& records, int64_t num_layers, const std::string& group,
           Hdf5Writer& file, Visit visit_metrics) {
  file.CreateGroup(group);
  if (records.empty()) return;
  std::vector<int64_t> steps;
  for (const auto& record : records) steps.push_back(record.step);
  file.WriteDataset(group + "/step", steps);
  visit_metrics(MetricColumns(file, group, num_layers, records));
}

template <typename Record, typename Visit>
std::vector<Record> Read(const Hdf5Reader& file, const std::string& group,
                         int64_t num_layers, Visit visit_metrics) {
  if (!file.Has(group)) {
    throw DataError(fmt::format(
        "{}: group {} is missing; delete the file and run the row again",
        file.path().string(), group));
  }
  std::vector<Record> records;
  if (!file.Has(group + "/step")) return records;
  for (const int64_t step : file.ReadDataset<int64_t>(group + "/step").values) {
    records.emplace_back().step = step;
  }
  visit_metrics(MetricColumns(file, group, num_layers, records));
  return records;
}

constexpr auto kOfSteps = [](const auto& visit) { VisitStepMetrics(visit); };
constexpr auto kOfEvaluations = [](const auto& visit) {
  VisitEvaluationMetrics(visit);
};

}  // namespace

void WriteStepTable(const std::vector<StepRecord>& steps, int64_t num_layers,
                    const std::string& group, Hdf5Writer& file) {
  Write(steps, num_layers, group, file, kOfSteps);
}

void WriteEvaluationTable(const std::vector<EvaluationRecord>& evaluations,
                          const std::string& group, Hdf5Writer& file) {
  Write(evaluations, 0, group, file, kOfEvaluations);
}

std::vector<StepRecord> ReadSomeSteps(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers) {
  return Read<StepRecord>(file, group, num_layers, kOfSteps);
}

std::vector<StepRecord> ReadStepTable(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers) {
  std::vector<StepRecord> steps = ReadSomeSteps(file, group, num_layers);
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t expected = static_cast<int64_t>(i) + 1;
    if (steps[i].step == expected) continue;
    throw DataError(fmt::format(
        "{}: dataset {}/step holds {} at row {}, expected {}; delete the file "
        "and run the row again",
        file.path().string(), group, steps[i].step, i, expected));
  }
  return steps;
}

std::vector<EvaluationRecord> ReadEvaluationTable(const Hdf5Reader& file,
                                                  const std::string& group) {
  return Read<EvaluationRecord>(file, group, 0, kOfEvaluations);
}

}  // namespace softmoe::trainer
