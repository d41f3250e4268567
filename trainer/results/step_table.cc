// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/step_table.h"

#include <fmt/format.h>

#include "core/errors.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_hdf5.h"

namespace softmoe::trainer {
namespace {

// One column of a table: a number, or a list [num_layers], of each record.
template <typename Record>
class ColumnWriter {
 public:
  ColumnWriter(const std::vector<Record>& records, int64_t num_layers,
               const std::string& group, Hdf5Writer& file)
      : records_(records), num_layers_(num_layers), group_(group), file_(file) {
    file_.CreateGroup(group_);
    if (records_.empty()) return;
    std::vector<int64_t> steps;
    for (const Record& record : records_) steps.push_back(record.step);
    file_.WriteDataset(group_ + "/step", steps);
  }

  void operator()(const Metric& metric, double Record::*member) const {
    if (records_.empty()) return;
    std::vector<double> column;
    for (const Record& record : records_) column.push_back(record.*member);
    WriteColumn(metric, column, {static_cast<int64_t>(column.size())}, group_,
                file_);
  }

  void operator()(const Metric& metric,
                  std::vector<double> Record::*member) const {
    if (records_.empty()) return;
    std::vector<double> values;
    for (const Record& record : records_) {
      const std::vector<double>& row = record.*member;
      SOFTMOE_CHECK(static_cast<int64_t>(row.size()) == num_layers_)
          << metric.name << " has " << row.size() << " layers";
      values.insert(values.end(), row.begin(), row.end());
    }
    WriteColumn(metric, values,
                {static_cast<int64_t>(records_.size()), num_layers_}, group_,
                file_);
  }

 private:
  const std::vector<Record>& records_;
  const int64_t num_layers_;
  const std::string& group_;
  Hdf5Writer& file_;
};

template <typename Record>
class ColumnReader {
 public:
  ColumnReader(const Hdf5Reader& file, const std::string& group,
               int64_t num_layers)
      : file_(file), group_(group), num_layers_(num_layers) {
    if (!file_.Has(group_)) {
      throw DataError(fmt::format(
          "{}: group {} is missing; delete the file and run the row again",
          file_.path().string(), group_));
    }
    if (!file_.Has(group_ + "/step")) return;
    for (const int64_t step :
         file_.ReadDataset<int64_t>(group_ + "/step").values) {
      records_.emplace_back().step = step;
    }
  }

  void operator()(const Metric& metric, double Record::*member) {
    if (records_.empty()) return;
    const std::vector<double> column =
        ReadColumn(file_, group_, metric, {num_records()});
    for (size_t i = 0; i < column.size(); ++i) records_[i].*member = column[i];
  }

  void operator()(const Metric& metric, std::vector<double> Record::*member) {
    if (records_.empty()) return;
    const std::vector<double> values =
        ReadColumn(file_, group_, metric, {num_records(), num_layers_});
    auto row = values.begin();
    for (Record& record : records_) {
      (record.*member).assign(row, row + num_layers_);
      row += num_layers_;
    }
  }

  std::vector<Record> Take() { return std::move(records_); }

 private:
  int64_t num_records() const { return static_cast<int64_t>(records_.size()); }

  const Hdf5Reader& file_;
  const std::string& group_;
  const int64_t num_layers_;
  std::vector<Record> records_;
};

}  // namespace

void WriteStepTable(const std::vector<StepRecord>& steps, int64_t num_layers,
                    const std::string& group, Hdf5Writer& file) {
  VisitStepMetrics(ColumnWriter(steps, num_layers, group, file));
}

void WriteEvaluationTable(const std::vector<EvaluationRecord>& evaluations,
                          const std::string& group, Hdf5Writer& file) {
  VisitEvaluationMetrics(ColumnWriter(evaluations, 0, group, file));
}

std::vector<StepRecord> ReadSomeSteps(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers) {
  ColumnReader<StepRecord> reader(file, group, num_layers);
  VisitStepMetrics(reader);
  return reader.Take();
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
  ColumnReader<EvaluationRecord> reader(file, group, 0);
  VisitEvaluationMetrics(reader);
  return reader.Take();
}

}  // namespace softmoe::trainer
