// SPDX-License-Identifier: Apache-2.0
#include "trainer/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/file_error.h"

namespace softmoe::trainer {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw FileError("read", path, errno);
  struct stat status {};
  int error = ::fstat(file, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = EINVAL;
  if (error == 0 && status.st_size > 0) {
    void* memory = ::mmap(nullptr, static_cast<size_t>(status.st_size),
                          PROT_READ, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) {
      error = errno;
    } else {
      data_ = static_cast<const unsigned char*>(memory);
      size_ = status.st_size;
    }
  }
  ::close(file);
  if (error != 0) throw FileError("read", path, error);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<unsigned char*>(data_), static_cast<size_t>(size_));
  }
}

}  // namespace softmoe::trainer
