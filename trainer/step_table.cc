// SPDX-License-Identifier: Apache-2.0
#include "trainer/step_table.h"

#include <fmt/format.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

// A column of `num_steps` rows; every value finite.
std::vector<double> ReadColumn(const Hdf5Reader& file, const std::string& path,
                               std::vector<int64_t> shape) {
  const Hdf5Array<double> column = file.ReadDataset<double>(path);
  if (column.shape != shape) {
    throw DataError(fmt::format(
        "{}: dataset {} has {} values, expected {} steps; the file was not "
        "written by this program, delete it",
        file.path().string(), path, column.values.size(), shape[0]));
  }
  for (double value : column.values) {
    if (!std::isfinite(value)) {
      throw DataError(fmt::format(
          "{}: dataset {} holds {}, expected finite numbers; delete the file "
          "and run the row again",
          file.path().string(), path, value));
    }
  }
  return column.values;
}

}  // namespace

void WriteStepTable(const std::vector<StepRecord>& steps, int64_t num_layers,
                    const std::string& group, Hdf5Writer& file) {
  file.CreateGroup(group);
  if (steps.empty()) return;
  const int64_t num_steps = static_cast<int64_t>(steps.size());

  std::vector<int64_t> numbers;
  for (const StepRecord& step : steps) numbers.push_back(step.step);
  file.WriteDataset(group + "/step", numbers);

  for (const StepScalar& field : kStepScalars) {
    std::vector<double> column;
    for (const StepRecord& step : steps) column.push_back(step.*field.member);
    const std::string path = group + "/" + field.name;
    file.WriteDataset(path, column);
    file.WriteAttribute(path, "unit", field.unit);
  }
  for (const StepVector& field : kStepVectors) {
    std::vector<double> values;
    for (const StepRecord& step : steps) {
      const std::vector<double>& row = step.*field.member;
      SOFTMOE_CHECK(static_cast<int64_t>(row.size()) == num_layers)
          << field.name << " has " << row.size() << " layers";
      values.insert(values.end(), row.begin(), row.end());
    }
    const std::string path = group + "/" + field.name;
    file.WriteDataset<double>(path, values, {num_steps, num_layers});
    file.WriteAttribute(path, "unit", field.unit);
  }
}

std::vector<StepRecord> ReadStepTable(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers) {
  if (!file.Has(group + "/step")) {
    if (!file.Has(group)) {
      throw DataError(fmt::format(
          "{}: group {} is missing; delete the file and run the row again",
          file.path().string(), group));
    }
    return {};
  }
  const std::vector<int64_t> numbers =
      file.ReadDataset<int64_t>(group + "/step").values;
  const int64_t num_steps = static_cast<int64_t>(numbers.size());
  std::vector<StepRecord> steps(numbers.size());
  for (int64_t i = 0; i < num_steps; ++i) {
    if (numbers[i] != i + 1) {
      throw DataError(fmt::format(
          "{}: dataset {}/step holds {} at row {}, expected {}; delete the "
          "file and run the row again",
          file.path().string(), group, numbers[i], i, i + 1));
    }
    steps[i].step = numbers[i];
  }
  for (const StepScalar& field : kStepScalars) {
    const std::vector<double> column =
        ReadColumn(file, group + "/" + field.name, {num_steps});
    for (int64_t i = 0; i < num_steps; ++i) steps[i].*field.member = column[i];
  }
  for (const StepVector& field : kStepVectors) {
    const std::vector<double> values =
        ReadColumn(file, group + "/" + field.name, {num_steps, num_layers});
    for (int64_t i = 0; i < num_steps; ++i) {
      (steps[i].*field.member)
          .assign(values.begin() + i * num_layers,
                  values.begin() + (i + 1) * num_layers);
    }
  }
  return steps;
}

}  // namespace softmoe::trainer
