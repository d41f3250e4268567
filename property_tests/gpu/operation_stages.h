// SPDX-License-Identifier: Apache-2.0
//
// operation_stages.h - the stages in which `verify run` checks one operation on
// the device, and the lines that follow from its report.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGES_H_

#include <string>
#include <vector>

#include "property_tests/gpu/stage_list.h"

namespace softmoe::gpu {

// One operation with activations of one type.
struct OperationRun {
  std::string operation;
  std::string precision;  // "fp32" or "bf16"
};

// All operations with CUDA source, in the model's order.
std::vector<OperationRun> OperationRuns();

// Throws ConfigError if no operation of this name runs on a device.
void CheckPlanted(const std::string& name);

// The `verify` implementation that runs here: "cuda", "cuda:bf16", "shim".
std::string ImplementationOf(const std::string& precision);

// Checks the operation against the reference.
Stage OperationStage(const OperationRun& run, const StageOptions& options);

// Checks that the device gives the bits of its simulation.
Stage BitsStage(const OperationRun& run, const StageOptions& options);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGES_H_
