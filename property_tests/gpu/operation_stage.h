// SPDX-License-Identifier: Apache-2.0
//
// operation_stage.h - cases of one operation of `verify` on the device.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGE_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGE_H_

#include <string>
#include <vector>

#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// One operation with activations of one type.
struct OperationRun {
  std::string operation;
  std::string precision;  // "fp32" or "bf16"
};

// All operations with CUDA source, in the model's order.
std::vector<OperationRun> OperationRuns();

// Writes a line of kind "operation", and prints failures as `verify run` does.
// True if all cases pass and are trusted.
bool TellOperation(const OperationRun& run, const StageContext& context);

// Throws ConfigError with a suggestion if `name` is not such an operation.
void CheckPlanted(const std::string& name);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_OPERATION_STAGE_H_
