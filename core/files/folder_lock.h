// SPDX-License-Identifier: Apache-2.0
//
// folder_lock.h - at most one process works in a run's folder.
//
// That process holds the kernel's lock (flock) on the file lock.json in the
// folder, which names the process, and on the folder itself, which stays locked
// while it is emptied, lock.json included. The kernel releases both locks when
// the process ends, however it ends. So a lock.json that nobody holds was left
// by a process that is gone, and it is taken over, unless nobody here can tell
// whether the process is alive. There are two such cases: the process may be on
// another machine (another name, or another or no /etc/machine-id, and another
// boot), and the file system is not known to carry locks between machines; or
// it may be in another container (another name, or another or no
// /etc/machine-id), and the file system has no locks.
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

// What lock.json says about the process that holds it, or has held it.
struct LockHolder {
  std::string host;     // name of the machine
  std::string machine;  // id of its installation; "": unknown
  std::string boot;     // id of the boot of its kernel; containers share it
  int64_t process = 0;  // 0: unknown
  std::string since;    // UTC, "2026-01-31T12:00:00Z"
};

// "process 12 on node7, since 2026-01-31T12:00:00Z", or "unknown".
std::string Describe(const LockHolder& holder);

// Another process has the lock. That process will end, or can be ended.
struct FolderHeldError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

// Holds the lock on an existing folder during its lifetime, and leaves no file
// in it afterwards.
class FolderLock {
 public:
  // Throws FolderHeldError if another process (or another FolderLock) holds the
  // lock, EnvironmentError if that cannot be known (see above) or if lock.json
  // cannot be written. `mountinfo` describes the mounted file systems, in the
  // format of /proc/self/mountinfo; tests pass their own.
  explicit FolderLock(
      const std::filesystem::path& folder,
      const std::filesystem::path& mountinfo = "/proc/self/mountinfo");
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // False if the file system has no locks. Then only lock.json keeps others
  // away, and two processes that begin at the same moment may both go on.
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

// Returns the lock on `folder` as soon as it is free. Until then calls
// `waiting(holder)`, which may throw, some five times a second.
std::unique_ptr<FolderLock> WaitForFolder(
    const std::filesystem::path& folder,
    const std::function<void(const LockHolder&)>& waiting);

// Returns who holds a FolderLock on `folder`, here or elsewhere, including a
// process that cannot be asked. Empty if nobody does, or there is no such
// folder. Takes the lock for a moment, which FolderLock tolerates.
std::optional<LockHolder> HolderOf(const std::filesystem::path& folder);

// The state of the process that a lock.json names, given that the kernel's lock
// on it, if the file system has locks, is free.
enum class Leftover { kGone, kAlive, kCannotBeAsked };

// `kernel` says whether the file system has locks, `reaches_all` whether they
// hold for all machines that can open the file.
Leftover JudgeLeftover(const LockHolder& left, const LockHolder& here,
                       bool kernel, bool reaches_all);

// Whether locks reach all machines that can open files of the mount `mount_id`,
// the first number of a line of `mountinfo`. They do on a local file system,
// NFS with local_lock=none, Lustre with flock, and Ceph. nullopt if there is no
// such line.
std::optional<bool> LocksReachAll(std::string_view mountinfo,
                                  uint64_t mount_id);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_FOLDER_LOCK_H_
