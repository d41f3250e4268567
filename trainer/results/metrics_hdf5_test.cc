// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics_hdf5.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kMetricsKind{.name = "metrics-test", .version = 1};
constexpr char kTable[] = "/table";

Metric Later(const char* name, MetricShape shape = MetricShape::kNumber) {
  Metric metric = metrics::kAllocation;
  metric.name = name;
  metric.shape = shape;
  metric.later = true;
  return metric;
}
const Metric kNewNumber = Later("number");
const Metric kNewOptional = Later("optional");
const Metric kNewList = Later("list", MetricShape::kLayers);
const Metric kNewLists = Later("lists", MetricShape::kLayersAndExperts);

const ModelConfig kModel = {.num_layers = 2, .num_experts = 3};

// A record all of whose metrics came later.
struct Grown {
  double number = 1.5;
  std::optional<double> optional = std::nullopt;
  std::vector<double> list = {};

  bool operator==(const Grown&) const = default;
};

template <typename File, typename Records>
void VisitTable(File& file, Records& records) {
  file.Group(kTable);
  const MetricColumns columns(file, kTable, kModel.num_layers, records);
  columns(kNewNumber, &Grown::number);
  columns(kNewOptional, &Grown::optional);
  columns(kNewList, &Grown::list);
}

// The same for the record of a run or a validation.
struct GrownRun {
  std::optional<double> optional = std::nullopt;
  std::vector<double> list = {};
  std::vector<std::vector<int64_t>> lists = {};

  bool operator==(const GrownRun&) const = default;
};

template <typename File, typename Run>
void VisitGrownRun(File& file, Run& run) {
  file.Group(kTable);
  VisitMetric(file, kTable, kNewOptional, kModel, run.optional);
  VisitMetric(file, kTable, kNewList, kModel, run.list);
  VisitMetric(file, kTable, kNewLists, kModel, run.lists);
}

// Writes a file that is older than these metrics.
std::filesystem::path OldFile() {
  const auto path = FreshFolder("metrics") / "old.h5";
  Hdf5Writer file(path, kMetricsKind);
  file.CreateGroup(kTable);
  file.Commit();
  return path;
}

std::filesystem::path Written(const std::vector<Grown>& records) {
  const auto path = FreshFolder("metrics") / "table.h5";
  Hdf5Writer file(path, kMetricsKind);
  VisitTable(file, records);
  file.Commit();
  return path;
}

std::vector<Grown> TableIn(const std::filesystem::path& path, size_t size) {
  const Hdf5Reader file(path, kMetricsKind);
  std::vector<Grown> records(size);
  VisitTable(file, records);
  return records;
}

TEST(MetricsHdf5, WhatIsMissingIsRefusedUnlessItCameLater) {
  const Hdf5Reader file(OldFile(), kMetricsKind);
  std::vector<Grown> records(1);
  std::vector<double> list = {2.5};
  std::vector<std::vector<int64_t>> lists = {{4}};
  double number = 3.5;
  const MetricColumns columns(file, kTable, kModel.num_layers, records);
  const auto read = [](Metric metric, const auto& visit) {
    metric.later = false;
    EXPECT_THROW(visit(metric), DataError) << metric.name;
    metric.later = true;
    visit(metric);
  };
  const auto visit_into = [&](auto& value) {
    return [&](const Metric& metric) {
      VisitMetric(file, kTable, metric, kModel, value);
    };
  };
  const auto column_into = [&](auto member) {
    return
        [&columns, member](const Metric& metric) { columns(metric, member); };
  };
  read(kNewNumber, visit_into(number));
  read(kNewList, visit_into(list));
  read(kNewLists, visit_into(lists));
  read(kNewNumber, column_into(&Grown::number));
  read(kNewList, column_into(&Grown::list));
  EXPECT_EQ(number, 3.5);
  EXPECT_EQ(list, std::vector<double>{2.5});
  EXPECT_EQ(lists, (std::vector<std::vector<int64_t>>{{4}}));
  EXPECT_EQ(records[0], Grown());
}

TEST(MetricsHdf5, AnOldTableIsReadWrittenAndReadAgain) {
  std::vector<Grown> records = TableIn(OldFile(), 3);
  EXPECT_EQ(records, std::vector<Grown>(3));
  auto path = Written(records);
  EXPECT_EQ(TableIn(path, 3), records);
  const Hdf5Reader file(path, kMetricsKind);
  EXPECT_FALSE(file.Has("/table/optional"));
  EXPECT_FALSE(file.Has("/table/list"));
  // Training resumes from it, in a version that measures the list.
  records.push_back({.number = 5, .list = {1, 2}});
  path = Written(records);
  EXPECT_EQ(TableIn(path, 4), records);
}

TEST(MetricsHdf5, ATableOfWhatCameLaterReadsBackEveryBit) {
  const std::vector<Grown> records = {
      {.number = 1.0 / 3, .optional = 2.0 / 3, .list = {4.0 / 3, 5.0 / 3}},
      {.number = 7.0 / 3, .optional = 8.0 / 3, .list = {0, 11.0 / 3}}};
  EXPECT_EQ(TableIn(Written(records), 2), records);
}

// Only a whole row of NaN says that a record has no list.
TEST(MetricsHdf5, RefusesATableWithNumbersThatAreNone) {
  const auto refusal = [](const Grown& record) {
    const auto path = Written({{.optional = 1, .list = {1, 2}}, record});
    return MessageOf<DataError>([&] { TableIn(path, 2); });
  };
  const double nan = std::nan("");
  EXPECT_EQ(refusal({.optional = 1}), kNoError);
  EXPECT_TRUE(Says(refusal({.optional = 1, .list = {3, nan}}),
                   "dataset /table/list holds nan"));
  EXPECT_TRUE(Says(refusal({.optional = 1, .list = {INFINITY, INFINITY}}),
                   "dataset /table/list holds inf"));
  EXPECT_TRUE(Says(refusal({.number = nan, .optional = 1}),
                   "dataset /table/number holds nan"));
  EXPECT_TRUE(Says(refusal({}), "/table/optional is [1], expected [2]"));
}

TEST(MetricsHdf5, AnOldRunIsReadWrittenAndReadAgain) {
  const auto path = FreshFolder("metrics") / "run.h5";
  const auto read = [](const std::filesystem::path& from) {
    const Hdf5Reader file(from, kMetricsKind);
    GrownRun run;
    VisitGrownRun(file, run);
    return run;
  };
  const auto written = [&](const GrownRun& run) {
    Hdf5Writer file(path, kMetricsKind);
    VisitGrownRun(file, run);
    file.Commit();
    return read(path);
  };
  const GrownRun old = read(OldFile());
  EXPECT_EQ(old, GrownRun());
  EXPECT_EQ(written(old), old);
  const GrownRun measured = {
      .optional = 1.0 / 3, .list = {2, 3}, .lists = {{1, 2, 3}, {4, 5, 6}}};
  EXPECT_EQ(written(measured), measured);
  // A metric that is not `later` is not left out.
  Metric always = kNewLists;
  always.later = false;
  Hdf5Writer file(path, kMetricsKind);
  VisitMetric(file, kTable, always, kModel, old.lists);
  file.Commit();
  const Hdf5Reader reader(path, kMetricsKind);
  std::vector<std::vector<int64_t>> lists;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     VisitMetric(reader, kTable, always, kModel, lists);
                   }),
                   "/table/lists is [0, 0], expected [2, 3]"));
}

}  // namespace
}  // namespace softmoe::trainer
