// SPDX-License-Identifier: Apache-2.0
#include "trainer/run_identity.h"

#include "core/sha256.h"
#include "kernels/isa.h"
#include "trainer/prepared_corpus.h"
#include "trainer/token_file.h"

namespace softmoe::trainer {

RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix) {
  RunIdentity identity;
  identity.config = config;
  identity.isa = kernels::IsaName(kernels::ActiveIsa());
  if (std::filesystem::exists(WithSuffix(prefix, ".json"))) {
    const PreparedCorpus corpus =
        OpenPreparedCorpus(prefix, config.model.vocab_size);
    identity.tokens.data_sha256 = corpus.tokens_sha256;
    identity.tokens.index_sha256 = corpus.index_sha256;
    identity.tokens.tokenizer_sha256 = corpus.tokenizer_sha256;
  } else {
    identity.tokens.data_sha256 = Sha256OfFile(WithSuffix(prefix, ".bin"));
    identity.tokens.index_sha256 = Sha256OfFile(WithSuffix(prefix, ".idx"));
    // Of others: a wrong id would end the run where it is met, maybe after
    // days. What we write never has one.
    TokenFile(prefix, config.model.vocab_size).CheckIds();
  }
  return identity;
}

}  // namespace softmoe::trainer
