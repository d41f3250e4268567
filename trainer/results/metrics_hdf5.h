// SPDX-License-Identifier: Apache-2.0
//
// metrics_hdf5.h - metrics in HDF5: a number is an attribute of a group, a list
// is a dataset in it that states its unit. The same calls write, given a
// writer, and read, given a reader; what is written may be const.
//
// If a metric that may be missing (Metric::later) is missing, the member keeps
// its value; a list that is empty for this reason is not written. So the
// content of an older file can be written and read again. Reading throws
// DataError naming file, object and remedy if anything else is missing, of
// another type or shape, or not finite.
#ifndef SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_
#define SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {

// Throw DataError: "dataset /steps/loss holds" (`what`) a non-finite `value`.
[[noreturn]] void RefuseNumber(const Hdf5Reader& file, const std::string& what,
                               double value);
void CheckSizes(const Hdf5Reader& file, const std::string& path,
                const std::vector<int64_t>& sizes,
                const std::vector<int64_t>& expected);

template <typename List>
int64_t Size(const List& list) {
  return static_cast<int64_t>(list.size());
}

// Throws DataError if one of the numbers is not finite.
template <typename T>
void CheckNumbers(const Hdf5Reader& file, const std::string& path,
                  std::span<const T> values) {
  for (const T value : values) {
    if (std::isfinite(static_cast<double>(value))) continue;
    RefuseNumber(file, "dataset " + path + " holds",
                 static_cast<double>(value));
  }
}

// Writes or reads a row-major list of double or int64_t, whose numbers may be
// anything. If the list is missing and may be, `values` stay as they are.
template <typename File, typename List>
void VisitUnchecked(File& file, const std::string& group, const Metric& metric,
                    const std::vector<int64_t>& sizes, List& values) {
  using T = typename List::value_type;
  const std::string path = Hdf5Path(group, metric.name);
  if constexpr (File::kReads) {
    if (metric.later && !file.Has(path)) return;
    Hdf5Array<T> array = file.template ReadDataset<T>(path);
    CheckSizes(file, path, array.shape, sizes);
    values = std::move(array.values);
  } else {
    if (metric.later && values.empty()) return;
    file.template WriteDataset<T>(path, values, sizes);
    file.WriteAttribute(path, "unit", metric.unit);
  }
}

// The same; throws DataError for a number that is not finite.
template <typename File, typename List>
void VisitList(File& file, const std::string& group, const Metric& metric,
               const std::vector<int64_t>& sizes, List& values) {
  VisitUnchecked(file, group, metric, sizes, values);
  if constexpr (File::kReads) {
    CheckNumbers<typename List::value_type>(file, Hdf5Path(group, metric.name),
                                            values);
  }
}

// Writes or reads a double, int64_t, optional<double> (an attribute that may be
// absent), vector<double>, or vector<vector<int64_t>> with rows of equal
// length. A list that is read has the sizes that metric.shape says.
template <typename File, typename Value>
void VisitMetric(File& file, const std::string& group, const Metric& metric,
                 const ModelConfig& model, Value& value) {
  using Type = std::remove_const_t<Value>;
  if constexpr (std::is_arithmetic_v<Type>) {
    if constexpr (File::kReads) {
      const std::string name = metric.name;
      if (metric.later && !file.HasAttribute(group, name)) return;
      file.Attribute(group, name, value);
      if (std::isfinite(static_cast<double>(value))) return;
      RefuseNumber(file, "attribute " + name + " of " + group + " is",
                   static_cast<double>(value));
    } else {
      file.WriteAttribute(group, metric.name, value);
    }
  } else if constexpr (std::is_same_v<Type, std::optional<double>>) {
    if constexpr (File::kReads) {
      if (file.HasAttribute(group, metric.name)) {
        VisitMetric(file, group, metric, model, value.emplace());
      }
    } else if (value) {
      VisitMetric(file, group, metric, model, *value);
    }
  } else if constexpr (std::is_same_v<Type, std::vector<double>>) {
    const std::vector<int64_t> sizes = File::kReads
                                           ? SizesOf(metric.shape, model)
                                           : std::vector<int64_t>{Size(value)};
    VisitList(file, group, metric, sizes, value);
  } else {
    std::vector<int64_t> values;
    if constexpr (File::kReads) {
      const std::vector<int64_t> sizes = SizesOf(metric.shape, model);
      VisitList(file, group, metric, sizes, values);
      if (values.empty()) return;  // an older file has none
      value.clear();
      for (auto row = values.begin(); row != values.end(); row += sizes[1]) {
        value.emplace_back(row, row + sizes[1]);
      }
    } else {
      for (const auto& row : value) {
        SOFTMOE_CHECK(row.size() == value.front().size())
            << metric.name << " has rows of " << value.front().size() << " and "
            << row.size();
        values.insert(values.end(), row.begin(), row.end());
      }
      const int64_t columns = value.empty() ? 0 : Size(value.front());
      VisitList(file, group, metric, {Size(value), columns}, values);
    }
  }
}

// Writes or reads one list for each metric of many records, whose number must
// be final. Pass it to the visit functions of metrics.h.
template <typename File, typename Records>
class MetricColumns {
 public:
  // The lists of a record have `num_layers` numbers.
  MetricColumns(File& file, std::string group, int64_t num_layers,
                Records& records)
      : file_(file),
        group_(std::move(group)),
        num_layers_(num_layers),
        records_(records) {}

  // A double, an int64_t, or an optional of one. An optional is written if the
  // records have it, and read if the file has it or the first record does.
  template <typename Record, typename Value>
  void operator()(const Metric& metric, Value Record::*member) const {
    constexpr bool kOptional = std::is_same_v<Value, std::optional<double>>;
    using T = std::conditional_t<kOptional, double, Value>;
    if (records_.empty()) return;
    std::vector<T> values;
    if constexpr (File::kReads) {
      if constexpr (kOptional) {
        const bool wanted = (records_.front().*member).has_value();
        if (!wanted && !file_.Has(Hdf5Path(group_, metric.name))) return;
      }
    } else {
      for (const Record& record : records_) {
        if constexpr (kOptional) {
          if (record.*member) values.push_back(*(record.*member));
        } else {
          values.push_back(record.*member);
        }
      }
      if (values.empty()) return;
    }
    VisitList(file_, group_, metric,
              {File::kReads ? Size(records_) : Size(values)}, values);
    if constexpr (File::kReads) {
      for (size_t i = 0; i < values.size(); ++i) {
        records_[i].*member = values[i];
      }
    }
  }

  // A list. If it came later, a row of NaN stands for a record without one, and
  // a table in which no record has one gets no dataset.
  template <typename Record>
  void operator()(const Metric& metric,
                  std::vector<double> Record::*member) const {
    if (records_.empty()) return;
    const std::vector<int64_t> sizes = {Size(records_), num_layers_};
    const auto columns = static_cast<size_t>(num_layers_);
    std::vector<double> values;
    if constexpr (File::kReads) {
      VisitUnchecked(file_, group_, metric, sizes, values);
      if (values.empty()) return;  // an older file has none
      std::span<const double> rest = values;
      for (Record& record : records_) {
        const std::span<const double> row = rest.first(columns);
        rest = rest.subspan(columns);
        if (metric.later && std::ranges::all_of(row, IsNan)) continue;
        CheckNumbers(file_, Hdf5Path(group_, metric.name), row);
        (record.*member).assign(row.begin(), row.end());
      }
    } else {
      bool any = false;
      for (const Record& record : records_) {
        const std::vector<double>& row = record.*member;
        any |= !row.empty();
        values.insert(values.end(), row.begin(), row.end());
        if (metric.later && row.empty()) {
          values.insert(values.end(), columns,
                        std::numeric_limits<double>::quiet_NaN());
        }
      }
      if (metric.later && !any) return;
      VisitList(file_, group_, metric, sizes, values);
    }
  }

 private:
  static bool IsNan(double value) { return std::isnan(value); }

  File& file_;
  const std::string group_;
  const int64_t num_layers_;
  Records& records_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_
