// SPDX-License-Identifier: Apache-2.0
#include "trainer/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/errors.h"
#include "core/file_error.h"

namespace softmoe::trainer {
namespace {

// Somebody who only asks has the lock for microseconds.
constexpr int kTries = 5;
constexpr std::chrono::milliseconds kPause(20);

// 0, or why not.
int TryLock(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw FileError("open", folder, errno);
  int error = TryLock(descriptor_);
  for (int i = 1; i < kTries && error == EWOULDBLOCK; ++i) {
    std::this_thread::sleep_for(kPause);
    error = TryLock(descriptor_);
  }
  if (error == 0) return;
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

bool IsLocked(const std::filesystem::path& folder) {
  const int descriptor =
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const int error = TryLock(descriptor);
  close(descriptor);
  return error == EWOULDBLOCK;
}

}  // namespace softmoe::trainer
