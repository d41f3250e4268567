// SPDX-License-Identifier: Apache-2.0
//
// input_file.h - reads the bytes of a file at any place.
#ifndef SOFTMOE_CORE_FILES_INPUT_FILE_H_
#define SOFTMOE_CORE_FILES_INPUT_FILE_H_

#include <cstdint>
#include <filesystem>

namespace softmoe {

// A file that stays open for reading. It remains the same file even if another
// one takes its name.
class InputFile {
 public:
  // Throws EnvironmentError if the file cannot be read, or is a folder, device
  // or pipe.
  explicit InputFile(std::filesystem::path path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }  // bytes, when it was opened
  // For libraries that read by themselves; open as long as this object lives.
  int descriptor() const { return descriptor_; }

  // Copies bytes [begin, begin + count), which must lie within size(), to
  // `out`. Threads may read at the same time. Throws EnvironmentError if the
  // disk cannot deliver them, DataError if the file has been truncated since it
  // was opened.
  void Read(int64_t begin, int64_t count, void* out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_INPUT_FILE_H_
