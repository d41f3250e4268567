// SPDX-License-Identifier: Apache-2.0
#include "trainer/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/errors.h"
#include "core/file_error.h"

namespace softmoe::trainer {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw FileError("open", folder, errno);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(descriptor_);
  // Some network file systems have no locks: run without one there.
  if (error == EWOULDBLOCK) {
    throw EnvironmentError(fmt::format(
        "{}: another process is working in this folder; wait for it, or use "
        "another folder",
        folder.string()));
  }
  descriptor_ = -1;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace softmoe::trainer
