// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_workers.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>

#include "core/failure.h"
#include "core/files/file_error.h"
#include "core/process/process.h"
#include "core/process/stop_signal.h"

namespace softmoe::experiments {
namespace {

constexpr int kWaitMilliseconds = 200;
// The exit status of a body that returned false; not an ExitCode.
constexpr int kNotDone = 64;
// Sent by the parent. The parent, a terminal and a scheduler may all signal a
// child for the same request, so only the parent ends at once on a second
// signal.
constexpr int kSaveAndEnd = SIGUSR1;

std::atomic<bool> asked = false;                         // in a child
void (*stop_handler)(int, siginfo_t*, void*) = nullptr;  // of StopSignal

void Handle(int signal_number, siginfo_t* signal_info, void* context) {
  if (asked.exchange(true)) return;
  stop_handler(signal_number == kSaveAndEnd ? SIGTERM : signal_number,
               signal_info, context);
}

[[noreturn]] void WorkAndExit(pid_t parent, int pipe,
                              const std::function<bool()>& body) {
  const StopSignal stop;
  struct sigaction action = {};
  sigaction(SIGTERM, nullptr, &action);
  stop_handler = action.sa_sigaction;
  action.sa_sigaction = &Handle;
  for (const int number : {SIGTERM, SIGINT, kSaveAndEnd}) {
    sigaction(number, &action, nullptr);
  }
  // By a signal before Handle was installed; any later one has told Handle.
  if (stop.requested()) asked = true;
  prctl(PR_SET_PDEATHSIG, kSaveAndEnd);
  if (getppid() != parent) _exit(static_cast<int>(ExitCode::kStopped));
  int status = static_cast<int>(ExitCode::kDone);
  try {
    if (!body()) status = kNotDone;
  } catch (...) {
    const Error failure = CurrentFailure();
    status = static_cast<int>(failure.code());
    WriteAll(pipe, failure.what());
  }
  std::cerr.flush();
  _exit(status);
}

WorkerEnd Reap(size_t job, pid_t process, std::string problem) {
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(process, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  WorkerEnd end;
  end.job = job;
  end.problem = std::move(problem);
  if (reaped < 0) {  // SIGCHLD is ignored
    end.code = ExitCode::kEnvironment;
    if (end.problem.empty()) {
      end.problem = "it is unknown how its process ended";
    }
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == kSaveAndEnd) {
    // Signalled before its handler was installed: nothing had begun.
    end.code = ExitCode::kStopped;
    end.problem = "stopped before it began";
  } else if (WIFSIGNALED(status)) {
    end.code = ExitCode::kEnvironment;
    end.problem = fmt::format(
        "its process was ended by signal {} ({}); the same command continues "
        "from its checkpoint",
        WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != kNotDone) {
    end.code = static_cast<ExitCode>(WEXITSTATUS(status));
    end.done = end.code == ExitCode::kDone;
  }
  return end;
}

}  // namespace

GridWorkers::~GridWorkers() {
  AskToStop();
  while (!workers_.empty()) Wait();
}

void GridWorkers::Start(size_t job, const std::function<bool()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw EnvironmentError(fmt::format("no pipe: {}", strerror(errno)));
  }
  // Otherwise the child would also print the buffered output.
  std::fflush(nullptr);
  std::cerr.flush();
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    WorkAndExit(parent, ends[1], body);
  }
  const int error = errno;
  close(ends[1]);
  if (process < 0) {
    close(ends[0]);
    throw EnvironmentError(fmt::format(
        "cannot start a process for another run: {}; use fewer --jobs",
        strerror(error)));
  }
  workers_.push_back(
      {.job = job, .process = process, .pipe = ends[0], .problem = ""});
}

void GridWorkers::AskToStop() const {
  for (const Worker& worker : workers_) kill(worker.process, kSaveAndEnd);
}

std::vector<WorkerEnd> GridWorkers::Wait() {
  std::vector<pollfd> pipes;
  for (const Worker& worker : workers_) {
    pipes.push_back({.fd = worker.pipe, .events = POLLIN, .revents = 0});
  }
  std::vector<WorkerEnd> ends;
  if (poll(pipes.data(), pipes.size(), kWaitMilliseconds) <= 0) return ends;
  // Backwards, since ended workers are removed.
  for (size_t i = pipes.size(); i-- > 0;) {
    if (pipes[i].revents == 0) continue;
    Worker& worker = workers_[i];
    std::array<char, 4096> text;
    const ssize_t size = read(worker.pipe, text.data(), text.size());
    if (size > 0) {
      worker.problem.append(text.data(), static_cast<size_t>(size));
    } else if (size == 0) {
      close(worker.pipe);
      ends.push_back(
          Reap(worker.job, worker.process, std::move(worker.problem)));
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return ends;
}

}  // namespace softmoe::experiments
