// SPDX-License-Identifier: Apache-2.0
#include "core/files/temporary_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".partial-";

// Returns the prefix of the names of hidden folders for `target`.
std::string Prefix(const std::string& target) {
  return fmt::format(".{}{}", target, kMark);
}

// Removes `folder`, which `lock` holds. lock.json goes with the lock, since NFS
// keeps a file that is open under another name, and thus its folder.
void RemoveLocked(const fs::path& folder, std::unique_ptr<FolderLock> lock) {
  std::error_code ignored;
  fs::directory_iterator entry(folder, ignored);
  for (; entry != fs::directory_iterator(); entry.increment(ignored)) {
    if (entry->path().filename() == kLockName) continue;
    fs::remove_all(entry->path(), ignored);
  }
  lock.reset();
  fs::remove(folder, ignored);  // unless another process has locked it by now
}

// Removes the folders in `parent` that are `ours` by name and not locked.
void RemoveLeftovers(const fs::path& parent,
                     const std::function<bool(const std::string&)>& ours) {
  std::error_code error;
  fs::directory_iterator entry(parent, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& folder = entry->path();
    // Asks first, since trying to take a lock that is held takes time.
    if (!ours(folder.filename().string()) || HolderOf(folder)) continue;
    try {
      RemoveLocked(folder, std::make_unique<FolderLock>(folder));
    } catch (const EnvironmentError&) {
      // Another process holds it, or it cannot be written, or it is gone.
    }
  }
}

// Whether `error` says that a folder cannot get a name that is taken.
bool IsTaken(int error) {
  return error == ENOTEMPTY || error == EEXIST || error == ENOTDIR;
}

}  // namespace

fs::path TemporaryParent() {
  std::error_code error;
  const fs::path named = fs::temp_directory_path(error);
  return error ? "/tmp" : named;
}

TemporaryFolder::TemporaryFolder(fs::path target) : target_(std::move(target)) {
  const fs::path parent = target_.parent_path();
  const std::string prefix = Prefix(target_.filename().string());
  MakeFolder(parent);
  RemoveLeftovers(parent, [&](const std::string& name) {
    return name.starts_with(prefix);
  });
  // Tries again if another process mistook the folder for a leftover before it
  // was locked.
  std::string hidden;
  std::error_code ignored;
  while (lock_ == nullptr) {
    hidden = (parent / (prefix + "XXXXXX")).string();
    if (mkdtemp(hidden.data()) == nullptr) {
      throw FileError("make a folder in", parent, errno);
    }
    try {
      lock_ = std::make_unique<FolderLock>(hidden);
    } catch (const FolderHeldError&) {
    } catch (const EnvironmentError&) {
      if (fs::remove_all(hidden, ignored) > 0) throw;
    }
  }
  path_ = fs::path(hidden) / "new";
  MakeFolder(path_);
  // Only the owner can open a folder of mkdtemp; this one gets the usual mode.
  fs::permissions(hidden, fs::status(path_, ignored).permissions(), ignored);
}

TemporaryFolder::~TemporaryFolder() {
  if (lock_ != nullptr) RemoveLocked(path_.parent_path(), std::move(lock_));
}

void TemporaryFolder::Commit() {
  const char* const from = path_.c_str();
  const char* const to = target_.c_str();
  const fs::path old = path_.parent_path() / "old";
  std::error_code ignored;
  while (rename(from, to) != 0) {
    if (!IsTaken(errno)) throw FileError("write", target_, errno);
    // The two folders change places in one step.
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) break;
    if (errno == ENOENT) continue;  // another process has moved it away
    if (errno != EINVAL && errno != ENOSYS) {
      throw FileError("write", target_, errno);
    }
    // If the file system cannot do that: in two steps, or not at all.
    if (rename(to, old.c_str()) != 0 && errno != ENOENT) {
      throw FileError("write", target_, errno);
    }
    if (rename(from, to) == 0) break;
    if (!IsTaken(errno)) {
      const int reason = errno;
      fs::rename(old, target_, ignored);
      throw FileError("write", target_, reason);
    }
    fs::remove_all(old, ignored);  // another process's is there by now
  }
  RemoveLocked(path_.parent_path(), std::move(lock_));  // and what was there
}

void RemoveLeftoverFolders(const fs::path& parent) {
  RemoveLeftovers(parent, [](const std::string& name) {
    const size_t mark = name.rfind(kMark);
    return name.starts_with('.') && mark != name.npos && mark > 1;
  });
}

PrivateFolder::PrivateFolder() {
  std::string name = (TemporaryParent() / "softmoe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw EnvironmentError(
        fmt::format("cannot make a folder like {}: {}; name a writable folder, "
                    "or set TMPDIR to one",
                    name, std::strerror(errno)));
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace softmoe
