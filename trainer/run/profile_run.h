// SPDX-License-Identifier: Apache-2.0
//
// profile_run.h - `train --profile`: where the time of a training step goes.
#ifndef SOFTMOE_TRAINER_RUN_PROFILE_RUN_H_
#define SOFTMOE_TRAINER_RUN_PROFILE_RUN_H_

#include <filesystem>
#include <string>

#include "core/config/config.h"

namespace softmoe::trainer {

// The table of optimized/step_profile.h for the first step of the run that
// `config` describes, on the token files `tokens`, with runtime.isa and
// runtime.recompute: measured with runtime.threads threads and with one, for a
// second and at least six times each. Writes no file. Throws what TrainRun
// throws, and ConfigError for any device but the CPU.
std::string ProfileRun(const Config& config,
                       const std::filesystem::path& tokens,
                       const RuntimeConfig& runtime);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_PROFILE_RUN_H_
