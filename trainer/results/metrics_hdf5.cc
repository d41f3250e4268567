// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics_hdf5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

[[noreturn]] void Refuse(const Hdf5Reader& file, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}; delete the file and run the row again, which goes "
                  "on from a checkpoint if there is one beside it",
                  file.path().string(), what));
}

std::string PathOf(const std::string& group, const std::string& name) {
  return group == "/" ? group + name : group + "/" + name;
}

template <typename T>
std::vector<T> ReadSizes(const Hdf5Reader& file, const std::string& path,
                         const std::vector<int64_t>& sizes) {
  Hdf5Array<T> array = file.ReadDataset<T>(path);
  if (array.shape != sizes) {
    Refuse(file, fmt::format("dataset {} is {}, expected {}", path, array.shape,
                             sizes));
  }
  return std::move(array.values);
}

}  // namespace

void WriteMetric(const Metric& metric, double value, const std::string& group,
                 Hdf5Writer& file) {
  file.WriteAttribute(group, metric.name, value);
}

void WriteMetric(const Metric& metric, int64_t value, const std::string& group,
                 Hdf5Writer& file) {
  file.WriteAttribute(group, metric.name, value);
}

void WriteMetric(const Metric& metric, const std::vector<double>& values,
                 const std::string& group, Hdf5Writer& file) {
  WriteColumn(metric, values, {static_cast<int64_t>(values.size())}, group,
              file);
}

void WriteMetric(const Metric& metric, const std::vector<int64_t>& values,
                 const std::string& group, Hdf5Writer& file) {
  const std::string path = PathOf(group, metric.name);
  file.WriteDataset(path, values);
  file.WriteAttribute(path, "unit", metric.unit);
}

void WriteMetric(const Metric& metric,
                 const std::vector<std::vector<int64_t>>& rows,
                 const std::string& group, Hdf5Writer& file) {
  std::vector<int64_t> values;
  for (const std::vector<int64_t>& row : rows) {
    SOFTMOE_CHECK(row.size() == rows.front().size())
        << metric.name << " has rows of " << rows.front().size() << " and "
        << row.size();
    values.insert(values.end(), row.begin(), row.end());
  }
  const std::string path = PathOf(group, metric.name);
  file.WriteDataset<int64_t>(path, values,
                             {static_cast<int64_t>(rows.size()),
                              static_cast<int64_t>(rows.front().size())});
  file.WriteAttribute(path, "unit", metric.unit);
}

void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig&, double& value) {
  const std::string name = NameIn(file.version(), metric);
  value = file.ReadDouble(group, name);
  if (!std::isfinite(value)) {
    Refuse(file, fmt::format("attribute {} of {} is {}, expected a finite "
                             "number",
                             name, group, value));
  }
}

void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig&, int64_t& value) {
  value = file.ReadInt(group, NameIn(file.version(), metric));
}

void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<double>& values) {
  values = ReadColumn(file, group, metric, SizesOf(metric.shape, model));
}

void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<int64_t>& values) {
  values =
      ReadSizes<int64_t>(file, PathOf(group, NameIn(file.version(), metric)),
                         SizesOf(metric.shape, model));
}

void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<std::vector<int64_t>>& rows) {
  const std::vector<int64_t> sizes = SizesOf(metric.shape, model);
  const std::vector<int64_t> values = ReadSizes<int64_t>(
      file, PathOf(group, NameIn(file.version(), metric)), sizes);
  rows.clear();
  for (auto row = values.begin(); row != values.end(); row += sizes[1]) {
    rows.emplace_back(row, row + sizes[1]);
  }
}

void WriteColumn(const Metric& metric, const std::vector<double>& values,
                 const std::vector<int64_t>& sizes, const std::string& group,
                 Hdf5Writer& file) {
  const std::string path = PathOf(group, metric.name);
  file.WriteDataset<double>(path, values, sizes);
  file.WriteAttribute(path, "unit", metric.unit);
}

std::vector<double> ReadColumn(const Hdf5Reader& file, const std::string& group,
                               const Metric& metric,
                               const std::vector<int64_t>& sizes) {
  const std::string path = PathOf(group, NameIn(file.version(), metric));
  std::vector<double> values = ReadSizes<double>(file, path, sizes);
  for (const double value : values) {
    if (!std::isfinite(value)) {
      Refuse(file, fmt::format("dataset {} holds {}, expected finite numbers",
                               path, value));
    }
  }
  return values;
}

}  // namespace softmoe::trainer
