// SPDX-License-Identifier: Apache-2.0
#include "core/files/temporary_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/paths.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// The descriptor of `folder`, or -1.
int OpenFolder(const fs::path& folder) {
  return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

constexpr std::string_view kMark = ".partial-";

// The prefix of the names of folders for `target`.
std::string Prefix(const std::string& target) {
  return fmt::format(".{}{}", target, kMark);
}

// Removes the folders in `parent` that are `ours` by name and not locked; none
// where the file system has no locks.
void RemoveLeftovers(const fs::path& parent,
                     const std::function<bool(const std::string&)>& ours) {
  std::error_code error;
  fs::directory_iterator entry(parent, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!ours(entry->path().filename().string())) continue;
    const int folder = OpenFolder(entry->path());
    if (folder < 0) continue;
    std::error_code ignored;
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) {
      fs::remove_all(entry->path(), ignored);
    }
    close(folder);
  }
}

// Whether a folder could not get a name because something has it.
bool IsTaken(int error) {
  return error == ENOTEMPTY || error == EEXIST || error == ENOTDIR;
}

fs::path UsualParent() {
  std::error_code error;
  const fs::path named = fs::temp_directory_path(error);
  return error ? "/tmp" : named;
}

}  // namespace

TemporaryFolder::TemporaryFolder(fs::path target) : target_(std::move(target)) {
  const fs::path parent = target_.parent_path();
  const std::string prefix = Prefix(target_.filename().string());
  MakeFolder(parent);
  RemoveLeftovers(parent, [&](const std::string& name) {
    return name.starts_with(prefix);
  });
  // Try again if another process took the folder for a leftover before it was
  // locked.
  while (path_.empty()) {
    std::string name = (parent / (prefix + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) {
      throw FileError("make a folder in", parent, errno);
    }
    lock_ = OpenFolder(name);
    if (lock_ < 0 && errno == ENOENT) continue;
    if (lock_ < 0) throw FileError("open", name, errno);
    flock(lock_, LOCK_EX);
    if (StillNames(name, lock_)) {
      path_ = name;
    } else {
      close(lock_);
    }
  }
  // mkdtemp gives its folders to the owner alone; this one gets the usual mode.
  const mode_t mask = umask(0);
  umask(mask);
  chmod(path_.c_str(), 0777 & ~mask);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (lock_ >= 0) close(lock_);
}

void TemporaryFolder::Commit() {
  const char* const from = path_.c_str();
  const char* const to = target_.c_str();
  fs::path old;  // what is there no more, if anything was
  std::error_code ignored;
  while (rename(from, to) != 0) {
    if (!IsTaken(errno)) throw FileError("write", target_, errno);
    // The two change places in one step.
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
      old = path_;
      break;
    }
    if (errno == ENOENT) continue;  // another process has moved it away
    if (errno != EINVAL && errno != ENOSYS) {
      throw FileError("write", target_, errno);
    }
    // Where the file system cannot do that, in two steps or none.
    old = path_.string() + ".old";
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
  if (!old.empty()) fs::remove_all(old, ignored);
  path_.clear();
}

void RemoveLeftoverFolders(const fs::path& parent) {
  RemoveLeftovers(parent, [](const std::string& name) {
    const size_t mark = name.rfind(kMark);
    return name.starts_with('.') && mark != name.npos && mark > 1;
  });
}

PrivateFolder::PrivateFolder() {
  std::string name = (UsualParent() / "softmoe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw EnvironmentError(
        fmt::format("cannot make a folder like {}: {}; name a folder that can "
                    "be written, or set TMPDIR to one",
                    name, std::strerror(errno)));
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace softmoe
