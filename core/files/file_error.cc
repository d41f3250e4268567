// SPDX-License-Identifier: Apache-2.0
#include "core/files/file_error.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace softmoe {
namespace {

const char* Remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free disk space or choose a folder on another disk";
    case EFBIG:
      return "raise the file size limit of this shell (ulimit -f) or choose a "
             "folder on another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a path that you may access, or change its permissions";
    case ENOENT:
      return "check the path; a relative path starts at the folder where the "
             "command was run";
    case ENOTDIR:
    case EEXIST:
    case EISDIR:
      return "a file is where a folder is needed, or the other way round; "
             "move it away or choose another path";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "check the disk and the path";
  }
}

}  // namespace

EnvironmentError FileError(const std::string& action,
                           const std::filesystem::path& path, int error) {
  return EnvironmentError(
      fmt::format("cannot {} '{}': {}; {}", action, path.string(),
                  std::generic_category().message(error), Remedy(error)));
}

int WriteAll(int file, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count =
        offset < 0 ? ::write(file, bytes.data(), bytes.size())
                   : ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    // A write of 0 bytes without an error does not happen on files; treating
    // it as a full disk keeps the loop finite.
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<size_t>(count));
    if (offset >= 0) offset += count;
  }
  return 0;
}

bool StillNames(const std::filesystem::path& path, int file) {
  struct stat named, opened;
  return stat(path.c_str(), &named) == 0 && fstat(file, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

void RequireRegularOrAbsent(const std::filesystem::path& path) {
  std::error_code unreadable;  // then opening reports it
  const auto status = std::filesystem::status(path, unreadable);
  if (std::filesystem::is_directory(status)) {
    throw FileError("write", path, EISDIR);
  }
  if (!std::filesystem::exists(status) ||
      std::filesystem::is_regular_file(status)) {
    return;
  }
  throw EnvironmentError(
      fmt::format("cannot write '{}': it is a device or a pipe, and a file is "
                  "needed; choose another path",
                  path.string()));
}

void RequireRegular(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_regular_file(status)) return;
  if (!std::filesystem::exists(status)) {
    throw FileError("read", path, error ? error.value() : ENOENT);
  }
  if (std::filesystem::is_directory(status)) {
    throw FileError("read", path, EISDIR);
  }
  throw EnvironmentError(
      fmt::format("cannot read '{}': it is a device or a pipe, and a file is "
                  "needed; save what comes out of it to a file",
                  path.string()));
}

}  // namespace softmoe
