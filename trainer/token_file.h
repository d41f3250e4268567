// SPDX-License-Identifier: Apache-2.0
//
// token_file.h - reads Megatron-LM token files (TOKEN_FILES.md has the bytes).
//
// PREFIX.bin holds token ids, PREFIX.idx where sequences and documents begin.
// In the files that we write, and in all that Megatron's preprocess_data.py
// writes, the sequences lie in PREFIX.bin without gaps, in order.
#ifndef SOFTMOE_TRAINER_TOKEN_FILE_H_
#define SOFTMOE_TRAINER_TOKEN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace softmoe::trainer {

// "PREFIX" + ".bin" and so on; PREFIX may contain dots.
std::filesystem::path WithSuffix(const std::filesystem::path& prefix,
                                 const std::string& suffix);

// A file mapped read-only. It must not shrink while mapped.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws EnvironmentError if the file cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  const unsigned char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  const unsigned char* data_ = nullptr;
  int64_t size_ = 0;
};

class TokenFile {
 public:
  // Maps PREFIX.bin and PREFIX.idx and checks their structure: magic, version,
  // element type, counts, lengths, pointers and document boundaries, and both
  // file sizes. Ids are checked against `vocab_size` when they are read.
  // Throws EnvironmentError if a file is missing, DataError that names the
  // file, the place and the remedy if one is damaged or of another kind.
  TokenFile(const std::filesystem::path& prefix, int64_t vocab_size);

  int64_t vocab_size() const { return vocab_size_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_documents() const {
    return static_cast<int64_t>(document_begin_.size()) - 1;
  }
  // Position in the stream of all tokens where document `d` begins;
  // num_tokens() for d = num_documents(). Non-decreasing.
  int64_t DocumentBegin(int64_t d) const {
    return document_begin_[static_cast<size_t>(d)];
  }

  // Copies tokens [begin, begin + count) of the stream to `out`. Throws
  // DataError that names the position of an id outside [0, vocab_size).
  void Read(int64_t begin, int64_t count, int32_t* out) const;

 private:
  void ReadIndex(const std::filesystem::path& path);

  std::filesystem::path prefix_;
  int64_t vocab_size_ = 0;
  int64_t num_tokens_ = 0;
  int64_t token_bytes_ = 0;              // 2 (uint16) or 4 (int32)
  std::vector<int64_t> document_begin_;  // [num_documents + 1]
  MappedFile tokens_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKEN_FILE_H_
