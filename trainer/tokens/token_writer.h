// SPDX-License-Identifier: Apache-2.0
//
// token_writer.h - writes Megatron-LM token files (TOKEN_FILES.md).
#ifndef SOFTMOE_TRAINER_TOKENS_TOKEN_WRITER_H_
#define SOFTMOE_TRAINER_TOKENS_TOKEN_WRITER_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/sha256.h"

namespace softmoe::trainer {

// Writes documents, one sequence each, to PREFIX.bin and PREFIX.idx. Neither
// file exists under its name before Commit; memory holds four bytes per
// document, but not the tokens.
class TokenWriter {
 public:
  // Throws EnvironmentError if the files cannot be made.
  TokenWriter(const std::filesystem::path& prefix, int64_t vocab_size);

  // Appends one document. ids in [0, vocab_size), fewer than 2^31 of them.
  // Throws EnvironmentError, e.g. for a full disk.
  void AddDocument(std::span<const int32_t> ids);

  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_documents() const {
    return static_cast<int64_t>(lengths_.size());
  }

  struct Hashes {
    std::string tokens_sha256;  // of PREFIX.bin
    std::string index_sha256;   // of PREFIX.idx
  };
  // Puts both files in place, PREFIX.idx last. Throws EnvironmentError.
  Hashes Commit();

 private:
  int64_t vocab_size_;
  int64_t num_tokens_ = 0;
  std::vector<int32_t> lengths_;
  std::vector<uint16_t> short_ids_;  // AddDocument's buffer
  AtomicFile tokens_;
  AtomicFile index_;
  Sha256 tokens_hash_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_WRITER_H_
