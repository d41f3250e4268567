// SPDX-License-Identifier: Apache-2.0
//
// stage_context.h - what the body of a stage is given, in the process of its
// own in which it runs.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace softmoe::gpu {

// A line of the record (golden/gpu_runs/gpu_record.h). A body leaves out what
// the parent adds: shares of ceilings.
using Line = nlohmann::ordered_json;

struct StageContext {
  std::function<void(const Line& line)> tell;
  double seconds = 60;  // after which the stage is killed
  // An operation, or NCCL ("nccl"), that is to be wrong, for the test of all
  // this; "": none.
  std::string planted;
  // Few cases: under a tool that makes everything a hundred times slower.
  bool brief = false;
};

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_
