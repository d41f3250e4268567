// SPDX-License-Identifier: Apache-2.0
//
// mapped_file.h - the bytes of a file as memory.
#ifndef SOFTMOE_TRAINER_MAPPED_FILE_H_
#define SOFTMOE_TRAINER_MAPPED_FILE_H_

#include <cstdint>
#include <filesystem>

namespace softmoe::trainer {

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

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_MAPPED_FILE_H_
