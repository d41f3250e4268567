// SPDX-License-Identifier: Apache-2.0
//
// gpu_run_file.h - a record of a run on a device as HDF5, to be kept in this
// folder (README.md).
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_

#include <filesystem>
#include <string>

#include "golden/gpu_runs/gpu_record.h"

namespace softmoe::golden {

// Whose records become goldens: those of devices; in tests any.
enum class AcceptedRuns { kOfDevices, kOfTests };

// Throws DataError, naming `place`, if the record is of a simulated device, or
// of a run in which an operation was told to be wrong. What failed is no
// reason: it is kept, too.
void RequireGolden(const GpuRecord& record, AcceptedRuns accepted,
                   const std::string& place);

// "2026-11-22-sm_90-cc58959a": when, on what, and by which lines.
std::string GpuRunName(const GpuRecord& record);

// Equal records give equal bytes. Throws EnvironmentError.
void WriteGpuRun(const std::filesystem::path& path, const GpuRecord& record);

// What WriteGpuRun wrote, checked as the lines of a record are. Throws
// EnvironmentError if the file is missing, DataError if it is not ours, altered,
// or holds what no record does.
GpuRecord ReadGpuRun(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_
