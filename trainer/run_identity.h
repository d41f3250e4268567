// SPDX-License-Identifier: Apache-2.0
//
// run_identity.h - which configuration on which tokens with which kernels.
#ifndef SOFTMOE_TRAINER_RUN_IDENTITY_H_
#define SOFTMOE_TRAINER_RUN_IDENTITY_H_

#include <filesystem>

#include "core/config.h"
#include "trainer/train_state.h"

namespace softmoe::trainer {

// The identity of a run of `config` on the token files PREFIX.{bin,idx}, whose
// bytes are hashed, with the kernels in use. Without PREFIX.model it has no
// tokenizer. Throws EnvironmentError if a file is missing.
RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_IDENTITY_H_
