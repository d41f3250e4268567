// SPDX-License-Identifier: Apache-2.0
//
// identify_run.h - computes the identity that a run would have here and now.
#ifndef SOFTMOE_TRAINER_TOKENS_IDENTIFY_RUN_H_
#define SOFTMOE_TRAINER_TOKENS_IDENTIFY_RUN_H_

#include <filesystem>

#include "core/config/config.h"
#include "optimized/device.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::trainer {

// The identity of a run of `config` on the token files PREFIX.{bin,idx}
// computed on `where`. With PREFIX.json the files are checked against it;
// without it, they are hashed, every id is checked, and the run has no
// tokenizer. Throws EnvironmentError if a file is missing, DataError if one is
// damaged, exchanged, or has a larger vocabulary.
RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix,
                        const optimized::DeviceIdentity& where);

// Replaces the part of `identity` that says where the run is computed.
void SetPlace(const optimized::DeviceIdentity& where, RunIdentity& identity);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_IDENTIFY_RUN_H_
