// SPDX-License-Identifier: Apache-2.0
#include "core/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/text/ascii.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kMaxSmallText = size_t{64} << 20;

// Returns a name that no other writer uses: hidden, so that listings of
// finished files do not show it, and marked with the process, so that the
// leftover of a killed process can be distinguished from a file being written.
fs::path TemporaryName(const fs::path& path) {
  static std::atomic<int> counter = 0;
  return path.parent_path() /
         ("." + path.filename().string() + "." + std::to_string(getpid()) +
          "." + std::to_string(++counter) + ".tmp");
}

struct TemporaryNameParts {
  std::string_view target;  // the file being written, without folder
  int64_t owner = 0;        // process; 0: not a name of TemporaryName
};

TemporaryNameParts SplitTemporaryName(std::string_view name) {
  // .TARGET.PID.COUNTER.tmp, read from the end: TARGET may hold anything.
  constexpr std::string_view kEnd = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return {};
  name.remove_suffix(kEnd.size());
  int64_t numbers[2] = {};  // counter, process
  for (int64_t& number : numbers) {
    const size_t point = name.rfind('.');
    if (point == std::string_view::npos) return {};
    const std::string_view digits = name.substr(point + 1);
    number = ParseNumber<int64_t>(digits).value_or(0);
    if (number <= 0 || digits.front() == '0') return {};
    name.remove_suffix(digits.size() + 1);
  }
  if (name.size() < 2) return {};
  return {name.substr(1), numbers[1]};
}

// Returns the content of a file. If it is longer than `limit`, returns only a
// beginning, which is also longer than `limit`.
std::string ReadBeginning(const fs::path& path, size_t limit) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw FileError("read", path, errno);
  std::string content;
  std::vector<char> buffer(size_t{64} << 10);
  ssize_t size;
  while (content.size() <= limit &&
         (size = read(descriptor, buffer.data(), buffer.size())) != 0) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      const int error = errno;
      close(descriptor);
      throw FileError("read", path, error);
    }
    content.append(buffer.data(), static_cast<size_t>(size));
  }
  close(descriptor);
  return content;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  RequireRegularOrAbsent(path_);
  // A link is kept; the file that it names is made or replaced.
  std::error_code unreadable;  // then opening reports it
  for (int links = 0; fs::is_symlink(path_, unreadable); ++links) {
    constexpr int kMostLinks = 40;  // as the kernel follows
    if (links == kMostLinks) throw FileError("write", path_, ELOOP);
    const fs::path target = fs::read_symlink(path_, unreadable);
    if (unreadable) break;
    path_ = path_.parent_path() / target;
  }
  do {
    temporary_ = TemporaryName(path_);
    descriptor_ =
        open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) throw FileError("write", path_, errno);
}

AtomicFile::~AtomicFile() { Abandon(); }

void AtomicFile::Write(const void* data, size_t size) {
  SOFTMOE_CHECK(descriptor_ >= 0) << path_ << " is already closed";
  const char* bytes = static_cast<const char*>(data);
  size_ += static_cast<int64_t>(size);
  while (size > 0) {
    const size_t part = std::min(size, kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes, bytes + part);
    bytes += part;
    size -= part;
    if (buffer_.size() == kBufferBytes) Flush();
  }
}

void AtomicFile::Flush() {
  const int error = WriteAll(descriptor_, {buffer_.data(), buffer_.size()});
  if (error != 0) Fail(error);
  buffer_.clear();
}

void AtomicFile::Commit() {
  SOFTMOE_CHECK(descriptor_ >= 0) << path_ << " is already closed";
  Flush();
  if (fsync(descriptor_) != 0) Fail(errno);
  // Network file systems report a full disk only here.
  if (close(std::exchange(descriptor_, -1)) != 0) Fail(errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail(errno);
  temporary_.clear();
  SyncFolderOf(path_);
}

void AtomicFile::Fail(int error) {
  Abandon();
  throw FileError("write", path_, error);
}

void AtomicFile::Abandon() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
}

void SyncFolderOf(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const int descriptor =
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int error = descriptor >= 0 && fsync(descriptor) == 0 ? 0 : errno;
  if (descriptor >= 0) close(descriptor);
  if (error != 0 && error != EACCES && error != EINVAL) {
    throw FileError("sync the folder of", path, error);
  }
}

void WriteFileAtomically(const fs::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

int64_t TemporaryFileOwner(std::string_view name) {
  return SplitTemporaryName(name).owner;
}

void RemoveLeftoversOf(const fs::path& path) {
  const std::string target = path.filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const TemporaryNameParts parts = SplitTemporaryName(name);
    std::error_code ignored;
    if (parts.owner == 0 || parts.target != target ||
        !fs::is_regular_file(entry->symlink_status(ignored))) {
      continue;
    }
    fs::remove(entry->path(), ignored);
  }
}

std::string ReadWholeFile(const fs::path& path) {
  RequireRegular(path);
  return ReadBeginning(path, std::numeric_limits<size_t>::max());
}

std::string ReadSmallText(const fs::path& path) {
  std::string text = ReadBeginning(path, kMaxSmallText);
  if (text.size() > kMaxSmallText) {
    throw DataError(
        fmt::format("{}: larger than {} MiB, so it cannot be a hand-written "
                    "configuration or table; give another file",
                    path.string(), kMaxSmallText >> 20));
  }
  return text;
}

}  // namespace softmoe
