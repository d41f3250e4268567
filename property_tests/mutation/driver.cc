// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/driver.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/stoppable_output.h"

namespace softmoe::mutation {

void Say(const std::string& text) { PrintUnlessStopped(stdout, text + "\n"); }

std::function<void(size_t, size_t)> Progress(const std::string& what) {
  return [what](size_t done, size_t all) {
    const size_t step = std::max<size_t>(1, all / 20);
    if (done % step == 0 || done == all) {
      Say(fmt::format("  {} of {} {}", done, all, what));
    }
  };
}

std::filesystem::path Workspace() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    throw EnvironmentError(
        "the sources are not known: start it as ./bazelw run //:verify -- "
        "mutate");
  }
  return workspace;
}

BuildFolder::BuildFolder() : path_(CacheFolder() / "mutants") {
  MakeFolder(path_);
  const std::filesystem::path file = path_ / "lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (lock_ >= 0) ::close(lock_);
    throw EnvironmentError(file.string() +
                           ": another `verify mutate` is running, or the file "
                           "cannot be opened; wait for it to end");
  }
  // A killed driver leaves this folder; its suites may still write there.
  std::error_code ignored;
  std::filesystem::remove_all(scratch(), ignored);
}

BuildFolder::~BuildFolder() { ::close(lock_); }

}  // namespace softmoe::mutation
