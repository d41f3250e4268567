// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/token_test_util.h"

#include "core/files/atomic_file.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {

std::string WriteTokenFiles(
    const std::filesystem::path& prefix, int64_t vocab_size,
    const std::vector<std::vector<int32_t>>& documents) {
  const auto size = static_cast<size_t>(TokenBytes(TokenTypeFor(vocab_size)));
  std::string bytes;
  std::vector<int32_t> lengths;
  for (const std::vector<int32_t>& ids : documents) {
    for (const int32_t id : ids) {
      bytes.append(reinterpret_cast<const char*>(&id), size);
    }
    lengths.push_back(static_cast<int32_t>(ids.size()));
  }
  WriteFileAtomically(WithSuffix(prefix, ".bin"), bytes);
  return WriteTokenIndex(WithSuffix(prefix, ".idx"), vocab_size, lengths);
}

}  // namespace softmoe::trainer
