// SPDX-License-Identifier: Apache-2.0
#include "core/process/isolated_call.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <new>
#include <thread>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {
namespace {

constexpr size_t kMaxMessage = 64 << 10;
constexpr int kOutOfMemory = 41;  // exit statuses of the child
constexpr int kThrew = 42;
constexpr int kTooLong = 43;
constexpr int kReturned = 44;  // not 0, with which the body itself may exit

using Clock = std::chrono::steady_clock;

void Limit(int resource, int64_t amount) {
  struct rlimit limit = {static_cast<rlim_t>(amount),
                         static_cast<rlim_t>(amount)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// Address and thread sanitizers map terabytes of shadow memory, beyond any
// limit.
#if defined(__has_feature)
#define SOFTMOE_HAS_FEATURE(x) __has_feature(x)
#else
#define SOFTMOE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    SOFTMOE_HAS_FEATURE(address_sanitizer)
constexpr bool kLimitMemory = false;
#else
constexpr bool kLimitMemory = true;
#endif

int64_t MappedBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

[[noreturn]] void RunChild(const std::function<std::string()>& body,
                           const IsolationLimits& limits, int result_pipe) {
  for (const int signal : {SIGPIPE, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    ::signal(signal, SIG_DFL);
  }
  // What asks us to stop is for our parent, whom a scheduler signals, too. If
  // it ended us, that would count as a crash of the body.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::signal(signal, SIG_IGN);
  }
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int file = 0; nowhere >= 0 && file < 3; ++file) ::dup2(nowhere, file);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_CPU, static_cast<int64_t>(std::ceil(limits.seconds)) + 1);
  if (kLimitMemory) Limit(RLIMIT_AS, MappedBytes() + limits.memory_bytes);
  int status = kReturned;
  try {
    const std::string value = body();
    if (static_cast<int64_t>(value.size()) > limits.value_bytes) {
      status = kTooLong;
    } else {
      WriteAll(result_pipe, value);
    }
  } catch (const std::bad_alloc&) {
    status = kOutOfMemory;
  } catch (const std::exception& error) {
    WriteAll(result_pipe, std::string(error.what()).substr(0, kMaxMessage));
    status = kThrew;
  } catch (...) {
    WriteAll(result_pipe, "unknown exception");
    status = kThrew;
  }
  ::_exit(status);  // no destructors, no flushing of the parent's buffers
}

// Reads until the child closes its end; false if the deadline passes before.
bool ReadUntilClosed(int file, Clock::time_point deadline, std::string* out) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    if (left.count() <= 0) return false;
    struct pollfd ready = {file, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    out->append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace

IsolatedResult CallIsolated(const std::function<std::string()>& body,
                            const IsolationLimits& limits) {
  // While this process holds the end that the child writes to, no other thread
  // may start a child, which would inherit that end and keep us waiting.
  static std::mutex starting;
  std::unique_lock<std::mutex> lock(starting);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw EnvironmentError(fmt::format(
        "cannot make a pipe: {}; raise `ulimit -n`", std::strerror(errno)));
  }
  const pid_t child = ::fork();
  if (child < 0) {
    const int reason = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw EnvironmentError(fmt::format(
        "cannot start a child process: {}; end other programs, or raise "
        "`ulimit -u`",
        std::strerror(reason)));
  }
  if (child == 0) {
    lock.unlock();  // the child's own copy
    ::close(ends[0]);
    RunChild(body, limits, ends[1]);
  }
  ::close(ends[1]);
  lock.unlock();
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(limits.seconds));
  std::string value;
  bool in_time = ReadUntilClosed(ends[0], deadline, &value);
  ::close(ends[0]);
  int status = 0;
  pid_t ended = 0;
  // The body may have closed its end and gone on.
  while (in_time && (ended = ::waitpid(child, &status, WNOHANG)) == 0) {
    in_time = Clock::now() < deadline;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!in_time) {
    ::kill(child, SIGKILL);
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
  }

  IsolatedResult result;
  if (!in_time || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) {
    result.failure = fmt::format("ran longer than {:g} s", limits.seconds);
  } else if (ended < 0) {
    result.failure =
        "ended with an unknown status: this process ignores SIGCHLD";
  } else if (WIFSIGNALED(status)) {
    result.failure = fmt::format("crashed ({})", ::strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == kOutOfMemory) {
    result.failure = fmt::format("needed more than {} MiB of memory",
                                 limits.memory_bytes >> 20);
  } else if (WEXITSTATUS(status) == kTooLong) {
    result.failure = fmt::format("gave more than {} bytes", limits.value_bytes);
  } else if (WEXITSTATUS(status) == kThrew) {
    result.failure = "failed: " + value;
  } else if (WEXITSTATUS(status) != kReturned) {
    result.failure =
        fmt::format("ended with exit status {}", WEXITSTATUS(status));
  } else {
    result.completed = true;
    result.value = std::move(value);
  }
  return result;
}

}  // namespace softmoe
