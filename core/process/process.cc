// SPDX-License-Identifier: Apache-2.0
#include "core/process/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/errors.h"

extern char** environ;

namespace softmoe {
namespace {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw EnvironmentError(
          fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int TakeRead() { return std::exchange(ends[0], -1); }
  int TakeWrite() { return std::exchange(ends[1], -1); }

  std::array<int, 2> ends{-1, -1};
};

// The settings of posix_spawn, released at the end.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Returns the strings in the form that exec needs. `strings` must outlive it.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

void Close(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

}  // namespace

std::vector<std::string> Environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

Process::Process(const ProcessOptions& options)
    : own_group_(options.own_group) {
  using Input = ProcessOptions::Input;
  using Output = ProcessOptions::Output;
  SOFTMOE_CHECK(!options.arguments.empty());
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment =
      options.environment ? *options.environment : Environment();

  SpawnSettings settings;
  posix_spawn_file_actions_t* actions = &settings.actions;
  Pipe in, out, err;
  if (options.input == Input::kPipe) {
    posix_spawn_file_actions_adddup2(actions, in.ends[0], STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
  }
  if (options.output == Output::kFile) {
    posix_spawn_file_actions_addopen(actions, STDOUT_FILENO,
                                     options.output_file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  } else {
    posix_spawn_file_actions_adddup2(actions, out.ends[1], STDOUT_FILENO);
  }
  posix_spawn_file_actions_adddup2(
      actions,
      options.output == Output::kApart ? err.ends[1] : int{STDOUT_FILENO},
      STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(actions, options.folder.c_str());
  sigset_t defaults;
  sigemptyset(&defaults);
  // If SIGPIPE is ignored here (stop_signal.h), the program would inherit that.
  sigaddset(&defaults, SIGPIPE);
  if (own_group_) {
    for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) {
      sigaddset(&defaults, signal);
    }
  }
  posix_spawnattr_setsigdefault(&settings.attributes, &defaults);
  posix_spawnattr_setflags(&settings.attributes,
                           own_group_
                               ? POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF
                               : POSIX_SPAWN_SETSIGDEF);

  const int failure = ::posix_spawnp(
      &child_, arguments[0].c_str(), actions, &settings.attributes,
      Pointers(arguments).data(), Pointers(environment).data());
  if (failure != 0) {
    const bool may_be_script =
        failure == ENOEXEC ||
        (failure == ENOENT && arguments[0].find('/') != std::string::npos);
    throw EnvironmentError(fmt::format(
        "cannot start '{}' in '{}': {}{}", arguments[0],
        options.folder.string(), std::strerror(failure),
        may_be_script
            ? "; a script names its interpreter in its first line, as "
              "\"#!/usr/bin/env python3\""
            : ""));
  }
  if (options.input == Input::kPipe) {
    input_ = in.TakeWrite();
    ::fcntl(input_, F_SETFL, O_NONBLOCK);  // Send has a limit
  }
  if (options.output != Output::kFile) outputs_[0] = out.TakeRead();
  if (options.output == Output::kApart) outputs_[1] = err.TakeRead();
}

Process::~Process() {
  Kill();
  Close(input_);
  for (int& output : outputs_) Close(output);
}

bool Process::Send(std::string_view bytes, double seconds) {
  // If the program has closed its stdin, the write must fail instead of killing
  // this process.
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  struct pollfd pipe = {input_, POLLOUT, 0};
  while (!bytes.empty()) {
    const ssize_t count = ::write(input_, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      if (::poll(&pipe, 1, static_cast<int>(1000 * seconds)) == 0) break;
    } else if (errno != EINTR) {
      break;
    }
  }
  ::signal(SIGPIPE, before);
  return bytes.empty();
}

void Process::CloseInput() { Close(input_); }

bool Process::Listen(int milliseconds, const Sink& sink) {
  std::array<struct pollfd, 2> files = {
      {{outputs_[0], POLLIN, 0}, {outputs_[1], POLLIN, 0}}};
  const bool open = outputs_[0] >= 0 || outputs_[1] >= 0;
  // A program that has closed both outputs is about to end.
  if (!open) milliseconds = std::clamp(milliseconds, 0, 1);
  if (::poll(files.data(), files.size(), milliseconds) <= 0) return open;
  for (size_t i = 0; i < files.size(); ++i) {
    if ((files[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(files[i].fd, buffer.data(), buffer.size());
    if (count > 0) {
      sink(i == 0 ? Stream::kOutput : Stream::kErrors,
           std::string_view(buffer.data(), static_cast<size_t>(count)));
    } else if (count == 0 || errno != EINTR) {
      Close(outputs_[i]);
    }
  }
  return outputs_[0] >= 0 || outputs_[1] >= 0;
}

void Process::ListenToEnd(const Sink& sink) {
  while (Listen(-1, sink)) continue;
  Wait(std::numeric_limits<double>::infinity());
}

bool Process::SeeEnd(int flags) {
  while (!ended_) {
    siginfo_t end = {};
    // A group keeps its number until its first process is reaped, which Kill
    // does.
    const int failure = ::waitid(P_PID, static_cast<id_t>(child_), &end,
                                 WEXITED | flags | (own_group_ ? WNOWAIT : 0));
    if (failure != 0 && errno == EINTR) continue;
    if (failure == 0 && end.si_pid == 0) return false;
    ended_ = true;
    lost_ =
        failure != 0;  // where SIGCHLD is ignored, nobody knows how it ended
    status_ = end.si_code == CLD_EXITED ? W_EXITCODE(end.si_status, 0)
                                        : W_EXITCODE(0, end.si_status);
  }
  return true;
}

bool Process::HasEnded() { return SeeEnd(WNOHANG); }

bool Process::Wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (std::isinf(seconds)) return SeeEnd(0);
  const auto start = Clock::now();
  while (!HasEnded()) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    if (passed.count() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool Process::Kill(double seconds) {
  const bool runs = !HasEnded();
  // What it has left in its group, too.
  if (own_group_ && (runs || !lost_)) ::kill(-child_, SIGKILL);
  // Even if it has moved to another group.
  if (runs) ::kill(child_, SIGKILL);
  const bool ended = Wait(seconds);
  if (!ended) ended_ = lost_ = true;
  // Once reaped, the number may become another group's.
  if (std::exchange(own_group_, false) && ended) {
    while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  return ended;
}

int Process::Signal() const {
  SOFTMOE_CHECK(ended_);
  if (lost_) {
    throw EnvironmentError(
        "it is unknown how a program ended: it did not end when killed, or "
        "this process ignores SIGCHLD");
  }
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

int Process::ExitStatus() const {
  SOFTMOE_CHECK(ended_);
  return Signal() != 0 ? 128 + Signal() : WEXITSTATUS(status_);
}

}  // namespace softmoe

namespace softmoe {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

// The environment of this process with messages in English.
std::vector<std::string> EnglishEnvironment() {
  std::vector<std::string> result = Environment();
  std::erase_if(result, [](std::string_view text) {
    return text.starts_with("LC_ALL=") || text.starts_with("LANGUAGE=");
  });
  result.emplace_back("LC_ALL=C");
  return result;
}

}  // namespace

bool IsProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) &&
         ::access(path.c_str(), X_OK) == 0;
}

bool HaveProgram(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    if (IsProgram(std::filesystem::path(rest.substr(0, colon)) / program)) {
      return true;
    }
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder, bool own_group) {
  ProcessOptions options;
  options.arguments = arguments;
  options.folder = folder;
  options.own_group = own_group;
  options.environment = EnglishEnvironment();
  Process process(options);
  ProgramResult result;
  process.ListenToEnd([&](Process::Stream, std::string_view bytes) {
    result.output += bytes.substr(0, kMaxOutput - result.output.size());
  });
  result.exit_status = process.ExitStatus();
  return result;
}

}  // namespace softmoe
