// SPDX-License-Identifier: Apache-2.0
#include "trainer/run_identity.h"

#include "core/sha256.h"
#include "kernels/isa.h"
#include "trainer/token_file.h"

namespace softmoe::trainer {

RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix) {
  RunIdentity identity;
  identity.config = config;
  identity.isa = kernels::IsaName(kernels::ActiveIsa());
  identity.data_sha256 = Sha256OfFile(WithSuffix(prefix, ".bin"));
  identity.index_sha256 = Sha256OfFile(WithSuffix(prefix, ".idx"));
  const std::filesystem::path tokenizer = WithSuffix(prefix, ".model");
  if (std::filesystem::exists(tokenizer)) {
    identity.tokenizer_sha256 = Sha256OfFile(tokenizer);
  }
  return identity;
}

}  // namespace softmoe::trainer
