// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/identify_run.h"

#include "core/files/sha256.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {

RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix,
                        const optimized::DeviceIdentity& where) {
  RunIdentity identity;
  identity.config = config;
  SetPlace(where, identity);
  if (std::filesystem::exists(WithSuffix(prefix, ".json"))) {
    identity.tokens =
        OpenPreparedCorpus(prefix, config.model.vocab_size).tokens;
  } else {
    identity.tokens.data_sha256 = Sha256OfFile(WithSuffix(prefix, ".bin"));
    identity.tokens.index_sha256 = Sha256OfFile(WithSuffix(prefix, ".idx"));
    // In others' files a wrong id would end the run only when it is reached,
    // perhaps after days. Files that we write never have one.
    TokenFile(prefix, config.model.vocab_size).CheckIds();
  }
  return identity;
}

void SetPlace(const optimized::DeviceIdentity& where, RunIdentity& identity) {
  identity.isa = where.isa;
  identity.backend = where.backend;
  identity.device = where.model;
  identity.libraries = where.libraries;
}

}  // namespace softmoe::trainer
