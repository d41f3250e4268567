// SPDX-License-Identifier: Apache-2.0
//
// gpu_table.h - which operations have been verified on a device, for
// property_tests/gpu/README.md.
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_TABLE_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "golden/gpu_runs/gpu_record.h"

namespace softmoe::golden {

// (operation, current hash of its sources), in table order.
using OperationSources = std::vector<std::pair<std::string, std::string>>;
// Parses the lines "OPERATION HASH" of //bazel:operation_sources. Throws
// DataError.
OperationSources ParseOperationSources(const std::string& text);

// A Markdown table with one line per operation: the finding of the latest run
// made from these sources; without one, that it is not verified on a device, or
// not since a given run.
std::string GpuTable(const std::vector<GpuRecord>& runs,
                     const OperationSources& sources);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_TABLE_H_
