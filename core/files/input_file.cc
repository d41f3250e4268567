// SPDX-License-Identifier: Apache-2.0
#include "core/files/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  RequireRegular(path_);  // before opening it: opening a pipe would wait
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw FileError("read", path_, errno);
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw FileError("read", path_, error);
  }
  size_ = status.st_size;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::Read(int64_t begin, int64_t count, void* out) const {
  SOFTMOE_CHECK(begin >= 0 && count >= 0 && count <= size_ - begin)
      << path_ << ": begin=" << begin << " count=" << count;
  auto* bytes = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t read =
        ::pread(descriptor_, bytes, static_cast<size_t>(count), begin);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) throw FileError("read", path_, errno);
    if (read == 0) {
      throw DataError(fmt::format(
          "{}: became shorter while it was in use: it had {} bytes, and now "
          "has at most {}; restore it, leave it alone while it is in use, and "
          "run the same command again",
          path_.string(), size_, begin));
    }
    bytes += read;
    begin += read;
    count -= read;
  }
}

}  // namespace softmoe
