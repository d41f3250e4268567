// SPDX-License-Identifier: Apache-2.0
//
// gpu_run_file.h - stores the record of a run on a device as HDF5 in this
// folder (README.md).
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_

#include <filesystem>
#include <string>

#include "golden/gpu_runs/gpu_record.h"

namespace softmoe::golden {

// Which records can become goldens: those of real devices; in tests any.
enum class AcceptedRuns { kOfDevices, kOfTests };

// Throws DataError, naming `place`, if the record comes from a simulated
// device, or from a run with a planted fault. Failures are no reason to refuse
// it: they are kept, too.
void RequireGolden(const GpuRecord& record, AcceptedRuns accepted,
                   const std::string& place);

// "2026-11-22-sm_90-cc58959a": date, device, and hash of the lines.
std::string GpuRunName(const GpuRecord& record);

// Equal records give equal bytes. Throws EnvironmentError.
void WriteGpuRun(const std::filesystem::path& path, const GpuRecord& record);

// Reads the output of WriteGpuRun and checks it as the lines of a record.
// Throws EnvironmentError if the file is missing, DataError if it is not ours,
// altered, or holds what no record does.
GpuRecord ReadGpuRun(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUN_FILE_H_
