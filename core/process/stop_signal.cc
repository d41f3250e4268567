// SPDX-License-Identifier: Apache-2.0
#include "core/process/stop_signal.h"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <mutex>

#include "core/errors.h"
#include "core/stoppable_output.h"

namespace softmoe {
namespace {

constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP};

using internal::stop_signal;

static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");
static_assert(std::atomic<int64_t>::is_always_lock_free);
std::atomic<int64_t> asked_at = 0;  // when the first signal came, or 0
std::mutex installing;              // of what follows
int installed = 0;                  // living objects
struct sigaction previous[std::size(kRequests)], previous_pipe;

int64_t Milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void Handle(int signal_number, siginfo_t* signal_info, void*) {
  // A program that started this one may pass on a request that has come here,
  // too: `timeout` signals the process, and at once its group. A terminal does
  // not use kill(), so a second Ctrl-C is never taken for that.
  constexpr int64_t kOneRequest = 1000;
  const int64_t now = Milliseconds();
  int64_t asked = 0;
  if (!asked_at.compare_exchange_strong(asked, now) &&
      signal_info->si_code == SI_USER && now - asked < kOneRequest) {
    return;
  }
  int first = 0;
  if (stop_signal.compare_exchange_strong(first, signal_number)) return;
  // When a terminal closes, SIGHUP comes from the kernel and again from the
  // shell, and SIGTERM may come from the session manager: all are one request.
  if (signal_number == SIGHUP) return;
  if (first == SIGHUP &&
      stop_signal.compare_exchange_strong(first, signal_number)) {
    asked_at = now;
    return;
  }
  // This is the second signal. It is blocked until the handler returns, and
  // then takes its default action: it ends the process.
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

StopSignal::StopSignal() {
  const std::lock_guard lock(installing);
  if (installed++ > 0) return;
  stop_signal = 0;
  asked_at = 0;
  struct sigaction action = {};
  action.sa_sigaction = &Handle;
  // Reads and writes go on undisturbed; output that waits for a reader checks
  // for a request itself (stoppable_output.h).
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (size_t i = 0; i < std::size(kRequests); ++i) {
    SOFTMOE_CHECK(sigaction(kRequests[i], nullptr, &previous[i]) == 0);
    // Under nohup a closed terminal is no reason to stop.
    if (kRequests[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) continue;
    SOFTMOE_CHECK(sigaction(kRequests[i], &action, nullptr) == 0);
  }
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  SOFTMOE_CHECK(sigaction(SIGPIPE, &ignore, &previous_pipe) == 0);
}

StopSignal::~StopSignal() {
  const std::lock_guard lock(installing);
  if (--installed > 0) return;
  for (size_t i = 0; i < std::size(kRequests); ++i) {
    sigaction(kRequests[i], &previous[i], nullptr);
  }
  sigaction(SIGPIPE, &previous_pipe, nullptr);
}

bool StopSignal::requested() const { return stop_signal != 0; }

std::string StopSignal::name() const {
  switch (stop_signal) {
    case 0:
      return "";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "SIGTERM";
  }
}

void StopSignal::ThrowIfRequested(const std::string& done) const {
  if (requested()) throw StoppedError(name() + ": " + done);
}

}  // namespace softmoe
