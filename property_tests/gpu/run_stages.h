// SPDX-License-Identifier: Apache-2.0
//
// run_stages.h - runs stages one after the other, each in its own process with
// a time limit, and writes their findings to a record line by line.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_RUN_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_RUN_STAGES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/gpu/stage_list.h"

namespace softmoe::gpu {

struct RunOptions {
  double minutes = 9;             // for all stages together
  std::filesystem::path record;   // a new file
  std::vector<std::string> only;  // names or prefixes of stages; empty: all
                                  // all
  std::string planted;
};

// Prints progress. A stage that fails, crashes or hangs does not stop the
// others. Returns kDone if all that could be run passes, kFailed with the names
// of what failed printed and recorded, kInconclusive if time ran out for some.
// Errors: EnvironmentError if there is no device, before there is a record;
// StoppedError.
ExitCode RunStages(const std::vector<Stage>& stages, const RunOptions& options);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_RUN_STAGES_H_
