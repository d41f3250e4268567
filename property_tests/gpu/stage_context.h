// SPDX-License-Identifier: Apache-2.0
//
// stage_context.h - the arguments of a stage's body, which runs in its own
// process.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace softmoe::gpu {

// A line of the record (golden/gpu_runs/gpu_record.h). A body omits what the
// parent adds: shares of ceilings.
using Line = nlohmann::ordered_json;

struct StageContext {
  std::function<void(const Line& line)> tell;
  double seconds = 60;  // the stage is killed after this
  // An operation, or NCCL ("nccl"), that is made wrong to test the check; "":
  // none.
  std::string planted;
  // Few cases, for tools that slow everything down a hundredfold.
  bool brief = false;
};

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_CONTEXT_H_
