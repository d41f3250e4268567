// SPDX-License-Identifier: Apache-2.0
//
// folder_lock.h - at most one process works in a run's folder.
//
// Who works there holds the kernel's lock (flock) of the file lock.json in the
// folder, which says who that is, and of the folder itself, which is what
// versions without that file lock. The kernel releases both when a process
// ends, however it ends. So a lock.json that nobody holds is that of a process
// that is gone, and is taken over - unless the file system is shared with
// other machines and is not known to carry locks between them, and the process
// belongs to another machine: that one cannot be asked from here.
#ifndef SOFTMOE_CORE_FILES_FOLDER_LOCK_H_
#define SOFTMOE_CORE_FILES_FOLDER_LOCK_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/errors.h"

namespace softmoe {

inline constexpr char kLockName[] = "lock.json";

// What lock.json says of the process that holds it, or held it.
struct LockHolder {
  std::string host;     // name of the machine
  std::string boot;     // id of the boot of its kernel; containers share it
  int64_t process = 0;  // 0: unknown
  std::string since;    // UTC, "2026-01-31T12:00:00Z"
};

// "process 12 on node7, since 2026-01-31T12:00:00Z", or "unknown".
std::string Describe(const LockHolder& holder);

// Another process has the lock; it will end, or can be ended.
struct FolderHeldError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// While alive, holds the lock of a folder that exists. Leaves no file there
// when it ends.
class FolderLock {
 public:
  // Throws FolderHeldError if another process (or another FolderLock) has it,
  // EnvironmentError if that cannot be known (above), or if lock.json cannot be
  // written.
  // `mountinfo` tells of file systems, in the form of that file; tests have
  // their own.
  explicit FolderLock(
      const std::filesystem::path& folder,
      const std::filesystem::path& mountinfo = "/proc/self/mountinfo");
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // False where the file system has no locks. Then lock.json alone keeps others
  // away, but for two that begin in the same moment.
  bool held() const { return kernel_; }

 private:
  enum class Attempt { kHeld, kBusy };
  Attempt Try(const std::filesystem::path& mountinfo);
  void Release();

  const std::filesystem::path folder_;
  int directory_ = -1;
  int file_ = -1;
  bool kernel_ = false;
};

// The lock of `folder` as soon as it can be had. Until then calls
// `waiting(holder)` every 0.1 s, which can throw.
std::unique_ptr<FolderLock> WaitForFolder(
    const std::filesystem::path& folder,
    const std::function<void(const LockHolder&)>& waiting);

// Who holds a FolderLock on `folder`, here or elsewhere; also who cannot be
// asked. None if there is no such folder. Takes the lock for a moment, which
// FolderLock bears.
std::optional<LockHolder> HolderOf(const std::filesystem::path& folder);

// What follows from a lock.json whose kernel lock, if there are any, is free.
enum class Leftover { kGone, kAlive, kCannotBeAsked };

// `kernel` says whether the file system has locks, `reaches_all` whether they
// hold for all machines that can open the file.
Leftover JudgeLeftover(const LockHolder& left, const LockHolder& here,
                       bool kernel, bool reaches_all);

// Whether locks hold for all machines that can open files of the mount
// `mount_id`, a line of /proc/self/mountinfo: those of a local file system, of
// NFS with local_lock=none, Lustre with flock, and Ceph.
bool LocksReachAll(std::string_view mountinfo, uint64_t mount_id);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_FOLDER_LOCK_H_
