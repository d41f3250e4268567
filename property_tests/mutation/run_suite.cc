// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/run_suite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <vector>

#include "core/errors.h"
#include "core/paths.h"
#include "core/runfiles.h"

extern char** environ;

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kKeptOutput = 64 << 10;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The folder that holds the runfiles of this repository: `path` without
// `program`, which is its path from there.
fs::path RunfilesOf(const fs::path& path, const std::string& program) {
  fs::path root = path;
  for ([[maybe_unused]] const auto& part : fs::path(program)) {
    root = root.parent_path();
  }
  return root;
}

// What says how this process was started would mislead another one.
bool IsAboutThisProcess(std::string_view entry) {
  for (const std::string_view prefix :
       {"TEST_", "TESTBRIDGE_", "GTEST_", "XML_", "RUNFILES_", "BUILD_",
        "RC_PARAMS=", "SOFTMOE_MUTANT"}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> Environment(const fs::path& runfiles,
                                     const std::string& id,
                                     const fs::path& folder) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!IsAboutThisProcess(*entry)) result.emplace_back(*entry);
  }
  result.push_back("TEST_SRCDIR=" + runfiles.parent_path().string());
  result.push_back("TEST_TMPDIR=" + folder.string());
  // As for the tests of a commit (.bazelrc); a first failure is enough.
  result.push_back("RC_PARAMS=seed=20260120 noshrink=1");
  if (!id.empty()) result.push_back("SOFTMOE_MUTANT=" + id);
  result.push_back("SOFTMOE_MUTANT_HITS=" + (folder / "hits").string());
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

// Starts the program as the leader of a process group of its own.
pid_t Start(const Suite& suite, const std::string& id, const fs::path& folder) {
  const fs::path program = RunfilePath(suite.program);
  const fs::path runfiles = RunfilesOf(program, suite.program);
  std::vector<std::string> arguments = {program.string()};
  arguments.insert(arguments.end(), suite.arguments.begin(),
                   suite.arguments.end());
  std::vector<std::string> environment = Environment(runfiles, id, folder);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, (folder / "output").c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  // Where `bazel test` starts tests.
  posix_spawn_file_actions_addchdir_np(&actions, runfiles.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, program.c_str(), &actions, &attributes,
                    Pointers(arguments).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw EnvironmentError(fmt::format("cannot start {}: {}", program.string(),
                                       std::strerror(failure)));
  }
  return child;
}

// Waits for `child`, or kills its group; fills in how it ended.
void Wait(pid_t child, double timeout, SuiteRun& run) {
  const Clock::time_point start = Clock::now();
  int status = 0;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) {
      throw InternalError(
          fmt::format("lost a test process: {}", std::strerror(errno)));
    }
    if (SecondsSince(start) > timeout) {
      ::kill(-child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      run.end = SuiteRun::End::kTimedOut;
      run.seconds = SecondsSince(start);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ::kill(-child, SIGKILL);  // what it may have left behind
  run.seconds = SecondsSince(start);
  if (WIFEXITED(status)) {
    run.code = WEXITSTATUS(status);
  } else {
    run.end = SuiteRun::End::kSignalled;
    run.code = WTERMSIG(status);
  }
}

std::string LastOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() > kKeptOutput) text.erase(0, text.size() - kKeptOutput);
  return text;
}

}  // namespace

SuiteRun RunSuite(const Suite& suite, const std::string& id, double timeout,
                  const fs::path& scratch) {
  static std::atomic<int> number = 0;
  const fs::path folder = scratch / std::to_string(++number);
  MakeFolder(folder);
  const uint64_t none = 0;
  std::ofstream(folder / "hits", std::ios::binary)
      .write(reinterpret_cast<const char*>(&none), sizeof(none));

  SuiteRun run;
  Wait(Start(suite, id, folder), timeout, run);
  std::ifstream(folder / "hits", std::ios::binary)
      .read(reinterpret_cast<char*>(&run.hits), sizeof(run.hits));
  run.output = LastOf(folder / "output");
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return run;
}

std::string SuiteCommand(const Suite& suite, const std::string& id) {
  const fs::path program = RunfilePath(suite.program);
  const fs::path runfiles = RunfilesOf(program, suite.program);
  std::string command = fmt::format(
      "cd {} && SOFTMOE_MUTANT={} TEST_SRCDIR={} {}", runfiles.string(), id,
      runfiles.parent_path().string(), program.string());
  for (const std::string& argument : suite.arguments) {
    command += " '" + argument + "'";
  }
  return command;
}

}  // namespace softmoe::mutation
