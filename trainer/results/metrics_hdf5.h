// SPDX-License-Identifier: Apache-2.0
//
// metrics_hdf5.h - writes and reads metrics in HDF5: a number is an attribute
// of a group, a list a dataset in it that states its unit.
//
// Files of version 2 have some names of their own (Metric::name_in_version_2).
// Reading throws DataError naming file, object and remedy if something is
// missing, of another type or shape, or not finite.
#ifndef SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_
#define SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/hdf5/hdf5_file.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {

void WriteMetric(const Metric& metric, double value, const std::string& group,
                 Hdf5Writer& file);
void WriteMetric(const Metric& metric, int64_t value, const std::string& group,
                 Hdf5Writer& file);
void WriteMetric(const Metric& metric, const std::vector<double>& values,
                 const std::string& group, Hdf5Writer& file);
void WriteMetric(const Metric& metric, const std::vector<int64_t>& values,
                 const std::string& group, Hdf5Writer& file);
// The rows have one length; there is at least one.
void WriteMetric(const Metric& metric,
                 const std::vector<std::vector<int64_t>>& rows,
                 const std::string& group, Hdf5Writer& file);

// Reads into the last argument; lists have the sizes that metric.shape says.
void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model, double& value);
void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model, int64_t& value);
void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<double>& values);
void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<int64_t>& values);
void ReadMetric(const Hdf5Reader& file, const std::string& group,
                const Metric& metric, const ModelConfig& model,
                std::vector<std::vector<int64_t>>& rows);

// A list of many records, row-major: `sizes` begins with their number.
void WriteColumn(const Metric& metric, const std::vector<double>& values,
                 const std::vector<int64_t>& sizes, const std::string& group,
                 Hdf5Writer& file);
std::vector<double> ReadColumn(const Hdf5Reader& file, const std::string& group,
                               const Metric& metric,
                               const std::vector<int64_t>& sizes);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_METRICS_HDF5_H_
