// SPDX-License-Identifier: Apache-2.0
//
// folder_lock.h - at most one process works in a run's folder.
#ifndef SOFTMOE_TRAINER_FOLDER_LOCK_H_
#define SOFTMOE_TRAINER_FOLDER_LOCK_H_

#include <filesystem>

namespace softmoe::trainer {

// While alive, holds the advisory lock of a folder that exists; some network
// file systems have none, and there it holds nothing. The system releases it
// when the process ends, however it ends; no file is left behind.
class FolderLock {
 public:
  // Throws EnvironmentError if another process (or another FolderLock) has it.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // False where the file system has no locks: others may be at work, too.
  bool held() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Whether a FolderLock on `folder` is alive, here or elsewhere. False if there
// is no such folder. Takes the lock for a moment, which FolderLock bears.
bool IsLocked(const std::filesystem::path& folder);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_FOLDER_LOCK_H_
