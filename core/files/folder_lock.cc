// SPDX-License-Identifier: Apache-2.0
#include "core/files/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "core/files/file_error.h"
#include "core/files/json_lines.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Magic numbers that <linux/magic.h> does not list.
constexpr uint32_t kBcachefsMagic = 0xca451a4e, kJfsMagic = 0x3153464a,
                   kZfsMagic = 0x2fc12fc1;

// HolderOf, which only asks, holds the lock for microseconds, so that whoever
// meets it tries again.
constexpr int kTries = 5;
constexpr std::chrono::milliseconds kPause(20);
constexpr std::chrono::milliseconds kWait(100);

// Returns 0, or the errno that says why not.
int TryLock(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

// Returns the content of a file of /proc; "" if there is none.
std::string ReadProc(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string FirstLine(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

LockHolder ThisProcess() {
  LockHolder here;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) here.host = name.data();
  here.machine = FirstLine("/etc/machine-id");
  here.boot = FirstLine("/proc/sys/kernel/random/boot_id");
  here.process = getpid();
  here.since = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  return here;
}

std::string ToLine(const LockHolder& holder) {
  return JsonLine({{"host", holder.host},
                   {"machine", holder.machine},
                   {"boot", holder.boot},
                   {"process", holder.process},
                   {"since", holder.since}});
}

// Returns the holder that an open lock.json names; none if the file is empty or
// torn because its writer got no further.
std::optional<LockHolder> ReadHolder(int descriptor) {
  std::array<char, 1024> text;
  const ssize_t size = pread(descriptor, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  const auto record =
      ParseJsonObject(std::string_view(text.data(), static_cast<size_t>(size)));
  LockHolder holder;
  try {
    holder.host = record.at("host").get<std::string>();
    holder.machine = record.value("machine", "");
    holder.boot = record.at("boot").get<std::string>();
    holder.process = record.at("process").get<int64_t>();
    holder.since = record.at("since").get<std::string>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return holder;
}

// Whether the open file is on a file system that belongs to this machine alone.
bool IsLocal(int descriptor) {
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return false;
  switch (static_cast<uint32_t>(status.f_type)) {
    case kBcachefsMagic:
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC:  // ext2 and ext3 as well
    case F2FS_SUPER_MAGIC:
    case kJfsMagic:
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case REISERFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
    case kZfsMagic:
      return true;
    default:
      return false;
  }
}

bool LocksOfFileReachAll(int descriptor, const fs::path& mountinfo) {
  struct statx status;
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0) {
    return false;
  }
  // In a chroot the table lacks the mount that holds its root.
  return LocksReachAll(ReadProc(mountinfo), status.stx_mnt_id)
      .value_or(IsLocal(descriptor));
}

Leftover Judge(const LockHolder& left, int descriptor, bool kernel,
               const fs::path& mountinfo) {
  return JudgeLeftover(left, ThisProcess(), kernel,
                       kernel && LocksOfFileReachAll(descriptor, mountinfo));
}

}  // namespace

std::string Describe(const LockHolder& holder) {
  if (holder.process == 0) return "unknown";
  return fmt::format("process {} on {}, since {}", holder.process, holder.host,
                     holder.since);
}

Leftover JudgeLeftover(const LockHolder& left, const LockHolder& here,
                       bool kernel, bool reaches_all) {
  const bool same_boot = left.boot == here.boot;
  // A kernel knows the locks of its own processes even where locks reach no
  // other machine.
  if (kernel && (same_boot || reaches_all)) return Leftover::kGone;
  // Containers on two machines may have the same name, and copied machines the
  // same id. Containers of one boot each number their processes from 1.
  if (left.host != here.host || left.machine != here.machine ||
      left.machine.empty()) {
    return Leftover::kCannotBeAsked;
  }
  // If the boots differ, this machine has been rebooted since.
  const bool alive =
      same_boot &&
      (kill(static_cast<pid_t>(left.process), 0) == 0 || errno != ESRCH);
  return alive ? Leftover::kAlive : Leftover::kGone;
}

std::optional<bool> LocksReachAll(std::string_view mountinfo,
                                  uint64_t mount_id) {
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    // ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS
    std::istringstream words(line);
    uint64_t id = 0;
    if (!(words >> id) || id != mount_id) continue;
    std::string word, type, source, options;
    while (words >> word && word != "-") continue;
    words >> type >> source >> options;
    const auto has = [&](const std::string& option) {
      return ("," + options + ",").find("," + option + ",") !=
             std::string::npos;
    };
    if (type == "nfs" || type == "nfs4") return has("local_lock=none");
    if (type == "lustre") return has("flock");
    if (type == "ceph") return true;
    const std::vector<std::string> kLocal = {
        "bcachefs", "btrfs", "ext2",  "ext3",     "ext4", "f2fs", "jfs",
        "overlay",  "ramfs", "tmpfs", "reiserfs", "xfs",  "zfs"};
    return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
  }
  return std::nullopt;
}

FolderLock::FolderLock(const fs::path& folder, const fs::path& mountinfo)
    : folder_(folder) {
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kPause);
    try {
      if (Try(mountinfo) == Attempt::kHeld) return;
    } catch (...) {
      Release();
      throw;
    }
    Release();
  }
  const LockHolder holder = HolderOf(folder).value_or(LockHolder());
  throw FolderHeldError(fmt::format(
      "{}: another process is working in this folder ({}); wait for it, or use "
      "another folder",
      folder.string(), Describe(holder)));
}

FolderLock::Attempt FolderLock::Try(const fs::path& mountinfo) {
  const fs::path path = folder_ / kLockName;
  directory_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) throw FileError("open", folder_, errno);
  // Some file systems cannot lock folders; there the file's lock decides. And
  // the holder may have removed the folder, and others may have made a new one.
  if (TryLock(directory_) == EWOULDBLOCK || !StillNames(folder_, directory_)) {
    return Attempt::kBusy;
  }
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw FileError("create", path, errno);
  const auto give_up = [&] {
    close(file);
    flock(directory_, LOCK_UN);
    return Attempt::kBusy;
  };
  const int error = TryLock(file);
  if (error == EWOULDBLOCK || !StillNames(path, file)) return give_up();
  const bool kernel = error == 0;
  if (const auto left = ReadHolder(file)) {
    switch (Judge(*left, file, kernel, mountinfo)) {
      case Leftover::kGone:
        break;
      case Leftover::kAlive:
        return give_up();
      case Leftover::kCannotBeAsked:
        give_up();
        throw EnvironmentError(fmt::format(
            "{}: left by {}, perhaps on another machine or in a container that "
            "locks of this file system may not reach, so this process cannot "
            "tell whether it is still running. Look there; if it has ended, "
            "delete that file, and run the same command again",
            path.string(), Describe(*left)));
    }
  }
  file_ = file;
  kernel_ = kernel;
  const std::string line = ToLine(ThisProcess());
  if (ftruncate(file_, 0) != 0 ||
      pwrite(file_, line.data(), line.size(), 0) !=
          static_cast<ssize_t>(line.size()) ||
      fsync(file_) != 0) {
    throw FileError("write", path, errno);
  }
  return Attempt::kHeld;
}

void FolderLock::Release() {
  if (file_ >= 0) {
    // The folder may have been removed, and replaced by another process.
    const fs::path path = folder_ / kLockName;
    if (StillNames(path, file_)) unlink(path.c_str());
    close(file_);
  }
  if (directory_ >= 0) close(std::exchange(directory_, -1));
}

FolderLock::~FolderLock() { Release(); }

std::unique_ptr<FolderLock> WaitForFolder(
    const fs::path& folder,
    const std::function<void(const LockHolder&)>& waiting) {
  while (true) {
    try {
      return std::make_unique<FolderLock>(folder);
    } catch (const FolderHeldError&) {
      waiting(HolderOf(folder).value_or(LockHolder()));
    }
    std::this_thread::sleep_for(kWait);
  }
}

std::optional<LockHolder> HolderOf(const fs::path& folder) {
  std::optional<LockHolder> left;
  for (int i = 0; i < kTries; ++i) {
    // Somebody else who asks holds the lock for a moment, too, unnamed.
    if (i > 0) std::this_thread::sleep_for(kPause);
    const int directory =
        open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return std::nullopt;
    bool locked = TryLock(directory) == EWOULDBLOCK, named = false;
    left.reset();
    const int file = open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC);
    if (file >= 0) {
      const int error = TryLock(file);
      locked |= error == EWOULDBLOCK;
      left = ReadHolder(file);
      named = left && Judge(*left, file, error == 0, "/proc/self/mountinfo") !=
                          Leftover::kGone;
      close(file);
    }
    close(directory);
    if (named) return left;
    if (!locked) return std::nullopt;
  }
  return left.value_or(LockHolder());
}

}  // namespace softmoe
