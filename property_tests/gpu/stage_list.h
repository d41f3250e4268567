// SPDX-License-Identifier: Apache-2.0
//
// stage_list.h - the checks on a device, from cheap to expensive.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_

#include <filesystem>
#include <string>
#include <vector>

#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// Work done in its own process.
struct Stage {
  std::string name;  // "operation rmsnorm bf16"
  double seconds;    // at most
  // The program and its arguments; empty: this one, with RunBody.
  std::vector<std::string> command = {};
  std::filesystem::path folder = ".";  // its working directory
  std::string why_not = {};            // why it cannot run here; "" if it can
};

// The first stage identifies the device: if there is none, nothing else is
// tried.
inline constexpr char kFactsStage[] = "facts";

// The stage that tests NCCL, which can be made wrong on purpose as operations
// can.
inline constexpr char kNcclStage[] = "nccl";

struct StageOptions {
  std::string planted;
  // The program `grid` and a grid for it to train; "": not run.
  std::filesystem::path grid, grid_file;
  std::filesystem::path grid_out;  // folder for its results
};

// Errors: ConfigError if `planted` is neither an operation nor NCCL.
std::vector<Stage> Stages(const StageOptions& options);

// Runs the body of the stage with this name, which has no command. Returns
// whether all holds. Errors: ConfigError for another name; those of the bodies.
bool RunBody(const std::string& name, const StageContext& context);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_
