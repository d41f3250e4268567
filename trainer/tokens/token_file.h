// SPDX-License-Identifier: Apache-2.0
//
// token_file.h - reads and writes Megatron-LM token files (TOKEN_FILES.md
// describes the bytes and names the source).
//
// PREFIX.bin holds token ids, PREFIX.idx where sequences and documents begin.
// In the files that we write, and in all that Megatron's preprocess_data.py
// writes, the sequences lie in PREFIX.bin without gaps, in order.
#ifndef SOFTMOE_TRAINER_TOKENS_TOKEN_FILE_H_
#define SOFTMOE_TRAINER_TOKENS_TOKEN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/files/input_file.h"

namespace softmoe::trainer {

// Element type codes.
inline constexpr uint8_t kTokenInt32 = 4;
inline constexpr uint8_t kTokenUint16 = 8;

// Megatron's choice of element type for a vocabulary.
inline uint8_t TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? kTokenUint16 : kTokenInt32;
}

inline int64_t TokenBytes(uint8_t type) { return type == kTokenUint16 ? 2 : 4; }

// Offset in PREFIX.idx of the element type, a byte.
inline constexpr int64_t kTokenTypeAt = 17;

// The remedy in messages about token files, and the files beside them.
inline constexpr char kMakeTokensAgain[] =
    "make the token files again with `./bazelw run //:prepare_data`";

// "PREFIX" + ".bin" and so on; PREFIX may contain dots.
inline std::filesystem::path WithSuffix(const std::filesystem::path& prefix,
                                        const std::string& suffix) {
  return prefix.string() + suffix;
}

class TokenFile {
 public:
  // Opens PREFIX.bin and PREFIX.idx and checks their structure: magic, version,
  // element type, counts, lengths, pointers and document boundaries, and both
  // file sizes. Ids are checked against `vocab_size` when they are read.
  // Throws EnvironmentError if a file is missing, DataError that names the
  // file, the place and the remedy if one is damaged or of another kind.
  TokenFile(const std::filesystem::path& prefix, int64_t vocab_size);

  int64_t vocab_size() const { return vocab_size_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_documents() const { return num_documents_; }
  // Position in the stream of all tokens where document `d` begins;
  // num_tokens() for d = num_documents(). Non-decreasing.
  int64_t DocumentBegin(int64_t d) const;

  // Copies tokens [begin, begin + count) of the stream to `out`. Throws a
  // DataError that names the position of an id outside [0, vocab_size), and
  // what InputFile throws for files that are damaged while they are in use.
  void Read(int64_t begin, int64_t count, int32_t* out) const;
  // Reads all tokens, so that Read checks their ids.
  void CheckIds() const;

 private:
  void CheckHeader();
  void CheckSequences();
  void CheckDocuments();
  // Byte offsets of these fields in the index.
  int64_t LengthAt(int64_t sequence) const;
  int64_t PointerAt(int64_t sequence) const;
  int64_t BoundaryAt(int64_t document) const;
  [[noreturn]] void Refuse(const std::string& suffix,
                           const std::string& what) const;

  std::filesystem::path prefix_;
  int64_t vocab_size_ = 0;
  int64_t token_bytes_ = 0;  // 2 (uint16) or 4 (int32)
  int64_t num_sequences_ = 0;
  int64_t num_documents_ = 0;
  int64_t num_tokens_ = 0;
  InputFile index_;
  InputFile tokens_;
};

// Writes the index of documents, one sequence each, of these lengths in tokens.
// Returns its SHA-256. Throws EnvironmentError.
std::string WriteTokenIndex(const std::filesystem::path& path,
                            int64_t vocab_size,
                            std::span<const int32_t> lengths);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_FILE_H_
