// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_writer.h"

#include <cstring>
#include <limits>

#include "core/errors.h"
#include "trainer/tokens/token_format.h"

namespace softmoe::trainer {
namespace {

// An index file and its hash.
class IndexStream {
 public:
  explicit IndexStream(AtomicFile* file) : file_(*file) {}
  void Write(std::string_view bytes) {
    file_.Write(bytes);
    hash_.Update(bytes);
  }
  template <typename T>
  void WriteValue(T value) {
    Write({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  std::string Hash() { return Sha256Hex(hash_.Finish()); }

 private:
  AtomicFile& file_;
  Sha256 hash_;
};

}  // namespace

TokenWriter::TokenWriter(const std::filesystem::path& prefix,
                         int64_t vocab_size)
    : vocab_size_(vocab_size),
      tokens_(WithSuffix(prefix, ".bin")),
      index_(WithSuffix(prefix, ".idx")) {
  SOFTMOE_CHECK(vocab_size >= 1) << "vocab_size=" << vocab_size;
}

void TokenWriter::AddDocument(std::span<const int32_t> ids) {
  SOFTMOE_CHECK(ids.size() <= std::numeric_limits<int32_t>::max());
  for (const int32_t id : ids) {
    SOFTMOE_CHECK(id >= 0 && id < vocab_size_) << "id=" << id;
  }
  const void* bytes = ids.data();
  size_t size = ids.size_bytes();
  if (TokenTypeFor(vocab_size_) == kTokenUint16) {
    short_ids_.assign(ids.begin(), ids.end());
    bytes = short_ids_.data();
    size = short_ids_.size() * sizeof(uint16_t);
  }
  tokens_.Write(bytes, size);
  tokens_hash_.Update(bytes, size);
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  num_tokens_ += static_cast<int64_t>(ids.size());
}

TokenWriter::Hashes TokenWriter::Commit() {
  const uint8_t type = TokenTypeFor(vocab_size_);
  IndexStream index(&index_);
  index.Write(kTokenIndexMagic);
  index.WriteValue(kTokenIndexVersion);
  index.WriteValue(type);
  index.WriteValue(static_cast<uint64_t>(lengths_.size()));
  index.WriteValue(static_cast<uint64_t>(lengths_.size()) + 1);
  for (const int32_t length : lengths_) index.WriteValue(length);
  int64_t pointer = 0;
  for (const int32_t length : lengths_) {
    index.WriteValue(pointer);
    pointer += length * TokenBytes(type);
  }
  for (int64_t d = 0; d <= num_documents(); ++d) index.WriteValue(d);

  tokens_.Commit();
  index_.Commit();
  return {Sha256Hex(tokens_hash_.Finish()), index.Hash()};
}

}  // namespace softmoe::trainer
