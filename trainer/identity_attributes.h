// SPDX-License-Identifier: Apache-2.0
//
// identity_attributes.h - a RunIdentity in result.h5 and checkpoint.h5: the
// attributes config_hash, data_sha256, index_sha256, tokenizer_sha256 and isa
// of the root. Each file has the configuration itself in its own way.
#ifndef SOFTMOE_TRAINER_IDENTITY_ATTRIBUTES_H_
#define SOFTMOE_TRAINER_IDENTITY_ATTRIBUTES_H_

#include "core/config.h"
#include "core/hdf5_file.h"
#include "trainer/run_identity.h"

namespace softmoe::trainer {

void WriteIdentity(const RunIdentity& identity, Hdf5Writer& file);

// `config` is the one that the file holds, as it was given to the run. Throws
// DataError if it does not have the hash that was stored with it.
RunIdentity ReadIdentity(const Hdf5Reader& file, const Config& config);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_IDENTITY_ATTRIBUTES_H_
