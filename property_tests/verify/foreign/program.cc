// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>

#include "core/errors.h"
#include "core/paths.h"
#include "core/stop_signal.h"
#include "property_tests/verify/implementation.h"

extern char** environ;

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

// Of what it says, the end is kept.
constexpr size_t kMaxSaid = 16 << 10;
constexpr size_t kMaxWords = 400;
constexpr int kTickMilliseconds = 20;

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
  int TakeRead() { return std::exchange(ends[0], -1); }
  int TakeWrite() { return std::exchange(ends[1], -1); }
  std::array<int, 2> ends{-1, -1};
};

void Keep(std::string& all, const char* bytes, size_t count) {
  all.append(bytes, count);
  if (all.size() > kMaxSaid) all.erase(0, all.size() - kMaxSaid / 2);
}

double SecondsUntil(Clock::time_point time) {
  return std::chrono::duration<double>(time - Clock::now()).count();
}

}  // namespace

Program::Program(std::filesystem::path path, Style style)
    : path_(std::move(path)), style_(style) {}

Program::~Program() {
  if (child_ < 0) return;
  Close(in_);  // the end of its input: a program that serves ends by itself
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (!Reap() && SecondsUntil(deadline) > 0) Listen(kTickMilliseconds);
  Kill();
}

void Program::Close(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

void Program::Start(const std::vector<std::string>& arguments) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  Pipe in, out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (style_ == Style::kServe) {
    posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
  posix_spawn_file_actions_addchdir_np(&actions, UserPath(".").c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGXFSZ}) {
    sigaddset(&defaults, signal);
  }
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A group of its own: Ctrl-C is for us, and Kill reaches its children.
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const int failure = ::posix_spawn(&child_, path_.c_str(), &actions,
                                    &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    child_ = -1;
    throw EnvironmentError(fmt::format(
        "cannot start '{}': {}{}", path_.string(), std::strerror(failure),
        failure == ENOEXEC || failure == ENOENT
            ? "; a script names its interpreter in its first line, as "
              "\"#!/usr/bin/env python3\""
            : ""));
  }
  ended_ = false;
  said_.clear();
  complained_.clear();
  if (style_ == Style::kServe) in_ = in.TakeWrite();
  out_ = out.TakeRead();
  err_ = err.TakeRead();
}

bool Program::Reap() {
  if (ended_ || child_ < 0) return true;
  const pid_t done = ::waitpid(child_, &status_, WNOHANG);
  ended_ = done == child_ || (done < 0 && errno != EINTR);
  return ended_;
}

void Program::Kill() {
  if (child_ < 0) return;
  ::kill(-child_, SIGKILL);  // those it has started, too
  while (!ended_) {
    const pid_t done = ::waitpid(child_, &status_, 0);
    ended_ = done == child_ || (done < 0 && errno != EINTR);
  }
  child_ = -1;
  Close(in_);
  Close(out_);
  Close(err_);
}

void Program::Listen(int milliseconds) {
  std::array<struct pollfd, 2> files = {{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  // A child that has closed both is about to end.
  if (out_ < 0 && err_ < 0) milliseconds = std::min(milliseconds, 1);
  if (::poll(files.data(), files.size(), milliseconds) <= 0) return;
  for (size_t i = 0; i < files.size(); ++i) {
    if ((files[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(files[i].fd, buffer.data(), buffer.size());
    if (count > 0) {
      Keep(i == 0 ? said_ : complained_, buffer.data(),
           static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      Close(i == 0 ? out_ : err_);
    }
  }
}

bool Program::IsDone() const {
  std::istringstream lines(said_);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() &&
           std::isspace(static_cast<unsigned char>(line.back()))) {
      line.pop_back();
    }
    if (line == "done" && !lines.eof()) return true;
  }
  return false;
}

std::string Program::EndText() const {
  return WIFSIGNALED(status_)
             ? fmt::format("crashed ({})", ::strsignal(WTERMSIG(status_)))
             : fmt::format("ended with exit status {}", WEXITSTATUS(status_));
}

std::string Program::LastWords() const {
  std::string words = complained_.empty() ? said_ : complained_;
  for (char& letter : words) {
    if (letter == '\n') letter = ' ';
    // Terminal sequences of others stay out of our reports.
    if (static_cast<unsigned char>(letter) < 0x20) letter = '?';
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  if (words.size() > kMaxWords) {
    words = "..." + words.substr(words.size() - kMaxWords);
  }
  return words.empty() ? "" : "; its last words: " + words;
}

void Program::Call(const std::filesystem::path& cases,
                   const std::filesystem::path& outputs, double seconds) {
  const bool serves = style_ == Style::kServe;
  if (!serves) {
    Start({path_.string(), cases.string(), outputs.string()});
  } else {
    if (child_ >= 0 && Reap()) Kill();
    if (child_ < 0) Start({path_.string()});
    said_.clear();
    const std::string line = cases.string() + "\t" + outputs.string() + "\n";
    // It may have ended since: an error of write, not our end.
    const auto before = ::signal(SIGPIPE, SIG_IGN);
    const ssize_t written = ::write(in_, line.data(), line.size());
    ::signal(SIGPIPE, before);
    (void)written;  // if it was not, the child has ended: found below
  }
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  const StopSignal signal;  // else Ctrl-C would wait for the deadline
  while (!Reap() && !(serves && IsDone())) {
    if (signal.requested()) {
      Kill();
      signal.ThrowIfRequested("a call of " + path_.string() + " was given up");
    }
    if (SecondsUntil(deadline) <= 0) {
      Kill();
      throw RunFailure(fmt::format(
          "the program was not done after {:g} s (--timeout) and was ended{}",
          seconds, LastWords()));
    }
    Listen(kTickMilliseconds);
  }
  if (!ended_) return;
  // What it said at last is still in the pipes.
  for (int i = 0; i < 16 && (out_ >= 0 || err_ >= 0); ++i) Listen(0);
  const bool well = WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  Kill();
  if (well && (!serves || IsDone())) return;
  if (well) {
    throw RunFailure("the program ended without the line \"done\"" +
                     LastWords());
  }
  throw RunFailure("the program " + EndText() + LastWords());
}

}  // namespace softmoe::verify
