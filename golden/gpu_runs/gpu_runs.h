// SPDX-License-Identifier: Apache-2.0
//
// gpu_runs.h - the kept records of runs on devices: each as an HDF5 file in
// this folder (README.md), all together as the table of what has been verified
// on a device.
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUNS_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUNS_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "golden/gpu_runs/gpu_record.h"

namespace softmoe::golden {

// Which records can become goldens: those of real devices; in tests simulated
// ones, too.
enum class AcceptedRuns { kOfDevices, kOfTests };

// Throws DataError, naming `place`, if the record comes from a simulated
// device, from a machine whose clock was not set, or from a run with a planted
// fault. Failures are no reason to refuse a record: they are kept, too.
void RequireGolden(const GpuRecord& record, AcceptedRuns accepted,
                   const std::string& place);

// The name of the "check" that a device computes an operation to the same bits
// as the simulated device: "bits of rmsnorm bf16".
std::string NameOfBits(const std::string& operation,
                       const std::string& precision);

// "2026-11-22-sm_90-cc58959a": date, device, and hash of the lines.
std::string GpuRunName(const GpuRecord& record);

// Equal records give equal bytes. Throws EnvironmentError.
void WriteGpuRun(const std::filesystem::path& path, const GpuRecord& record);

// Reads the output of WriteGpuRun and checks it as the lines of a record.
// Throws EnvironmentError if the file is missing, DataError if it is not ours,
// altered, or holds what no record does.
GpuRecord ReadGpuRun(const std::filesystem::path& path);

// (operation, current hash of its sources), in table order.
using OperationSources = std::vector<std::pair<std::string, std::string>>;
// Parses the lines "OPERATION HASH" of //bazel:operation_sources. Throws
// DataError.
OperationSources ParseOperationSources(const std::string& text);

// Returns a Markdown table for property_tests/gpu/README.md, one line per
// operation: for each model of device and each precision, the findings of the
// latest day's runs from these sources, including runs that crashed or hung;
// without any, that it is not verified on a device, or not since a given run.
std::string GpuTable(const std::vector<GpuRecord>& runs,
                     const OperationSources& sources);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_RUNS_H_
