// SPDX-License-Identifier: Apache-2.0
#include "trainer/temporary_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include "core/file_error.h"
#include "core/paths.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// ".NAME.partial-" + process + "-" + number
void RemoveLeftovers(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t process = 0;
    const char* digits = name.data() + prefix.size();
    std::from_chars(digits, name.data() + name.size(), process);
    const bool gone = process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
    if (gone) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(fs::path target) : target_(std::move(target)) {
  static std::atomic<int> number{0};
  const fs::path parent = target_.parent_path();
  const std::string prefix =
      fmt::format(".{}.partial-", target_.filename().string());
  MakeFolder(parent);
  RemoveLeftovers(parent, prefix);
  path_ = parent / fmt::format("{}{}-{}", prefix, ::getpid(), number++);
  std::error_code error;
  fs::remove_all(path_, error);  // of an earlier process with our number
  MakeFolder(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

void TemporaryFolder::Commit() {
  std::error_code error;
  fs::rename(path_, target_, error);
  if (error) {
    // There is one already: out of the way with it, in one step.
    const fs::path old = path_.string() + ".old";
    fs::rename(target_, old, error);
    fs::rename(path_, target_, error);
    const int reason = error.value();
    std::error_code ignored;
    fs::remove_all(old, ignored);
    if (error) throw FileError("write", target_, reason);
  }
  path_.clear();
}

}  // namespace softmoe::trainer
