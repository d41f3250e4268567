// SPDX-License-Identifier: Apache-2.0
//
// mapped_file.h - the bytes of a file as memory.
#ifndef SOFTMOE_CORE_FILES_MAPPED_FILE_H_
#define SOFTMOE_CORE_FILES_MAPPED_FILE_H_

#include <cstdint>
#include <filesystem>

namespace softmoe {

// A file mapped read-only. Where somebody makes it shorter meanwhile, reading
// what is gone ends the process with exit code 2 and a message that names the
// file: the system sends SIGBUS, and there is no way back into the program.
// Files are written whole or not at all, so nothing else is lost than with
// SIGKILL.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws EnvironmentError if the file cannot be read, or is a device or pipe.
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

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_MAPPED_FILE_H_
