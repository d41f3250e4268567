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
    identity.data_sha256 = corpus.tokens_sha256;
    identity.index_sha256 = corpus.index_sha256;
    identity.tokenizer_sha256 = corpus.tokenizer_sha256;
  } else {
    identity.data_sha256 = Sha256OfFile(WithSuffix(prefix, ".bin"));
    identity.index_sha256 = Sha256OfFile(WithSuffix(prefix, ".idx"));
  }
  return identity;
}

}  // namespace softmoe::trainer
