// SPDX-License-Identifier: Apache-2.0
//
// stage_list.h - what is checked on a device, from cheap to dear.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// What is done in a process of its own.
struct Stage {
  std::string name;  // "operation rmsnorm bf16"
  double seconds;    // at most
  // The program and its arguments; empty: this one, with RunBody.
  std::vector<std::string> command = {};
  std::filesystem::path folder = ".";  // where it stands
  std::string why_not = {};            // cannot be run here; "": it can
};

// The first says what the device is: if it fails for want of one, nothing else
// is tried.
inline constexpr char kFactsStage[] = "facts";

// That asks NCCL, which can be told to be wrong as operations can.
inline constexpr char kNcclStage[] = "nccl";

struct StageOptions {
  std::string planted;
  // The program `grid` and a grid for it to train; "": that is not run.
  std::filesystem::path grid, grid_file;
  std::filesystem::path grid_out;  // where its results go
};

// Errors: ConfigError if `planted` is neither an operation nor NCCL.
std::vector<Stage> Stages(const StageOptions& options);

// The body of the stage with this name, which has no command. Returns whether
// all holds. Errors: ConfigError for another name; those of the bodies.
bool RunBody(const std::string& name, const StageContext& context);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_
