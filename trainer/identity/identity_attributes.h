// SPDX-License-Identifier: Apache-2.0
//
// identity_attributes.h - a RunIdentity in result.h5, checkpoint.h5 and records
// of runs: the attributes config_hash, data_sha256, index_sha256,
// tokenizer_sha256 and isa of a group, which is the root in a file of one run;
// for a GPU also backend, device and libraries. Each file stores the
// configuration itself in its own way.
#ifndef SOFTMOE_TRAINER_IDENTITY_IDENTITY_ATTRIBUTES_H_
#define SOFTMOE_TRAINER_IDENTITY_IDENTITY_ATTRIBUTES_H_

#include <string>

#include "core/config/config.h"
#include "core/hdf5/hdf5_file.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::trainer {

void WriteIdentity(const RunIdentity& identity, const std::string& group,
                   Hdf5Writer& file);

// `config` is the file's configuration as given to the run. Throws DataError if
// its hash is not the stored one.
RunIdentity ReadIdentity(const Hdf5Reader& file, const std::string& group,
                         const Config& config);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_IDENTITY_ATTRIBUTES_H_
