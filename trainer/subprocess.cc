// SPDX-License-Identifier: Apache-2.0
#include "trainer/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/errors.h"

extern char** environ;

namespace softmoe::trainer {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

// The environment of this process with messages in English.
std::vector<std::string> EnglishEnvironment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("LC_ALL=") || text.starts_with("LANGUAGE=")) continue;
    result.emplace_back(text);
  }
  result.emplace_back("LC_ALL=C");
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

bool HaveProgram(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    const std::filesystem::path folder(rest.substr(0, colon));
    if (::access((folder / program).c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder) {
  SOFTMOE_CHECK(!arguments.empty());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw EnvironmentError(
        fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  std::vector<std::string> arguments_copy = arguments;
  std::vector<std::string> environment = EnglishEnvironment();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, arguments[0].c_str(), &actions,
                                     nullptr, Pointers(arguments_copy).data(),
                                     Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failure != 0) {
    ::close(ends[0]);
    throw EnvironmentError(fmt::format("cannot start {} in {}: {}",
                                       arguments[0], folder.string(),
                                       std::strerror(failure)));
  }

  ProgramResult result;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const size_t room = kMaxOutput - result.output.size();
    result.output.append(buffer.data(),
                         std::min(room, static_cast<size_t>(count)));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_status =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace softmoe::trainer
