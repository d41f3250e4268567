// SPDX-License-Identifier: Apache-2.0
#include "core/process/stop_signal.h"

#include <signal.h>

#include <atomic>
#include <iterator>

#include "core/errors.h"

namespace softmoe {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

std::atomic<int> received = 0;  // the signal, or 0
static_assert(std::atomic<int>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");
int installed = 0;  // living objects
struct sigaction previous[std::size(kSignals)];

void Handle(int signal_number) {
  int none = 0;
  if (received.compare_exchange_strong(none, signal_number)) return;
  // The second signal. It is blocked until the handler returns and then takes
  // its default action: it ends the process.
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

StopSignal::StopSignal() {
  if (installed++ > 0) return;
  received = 0;
  struct sigaction action = {};
  action.sa_handler = &Handle;
  action.sa_flags = SA_RESTART;  // reads and writes go on undisturbed
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    SOFTMOE_CHECK(sigaction(kSignals[i], &action, &previous[i]) == 0);
  }
}

StopSignal::~StopSignal() {
  if (--installed > 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &previous[i], nullptr);
  }
}

bool StopSignal::requested() const { return received != 0; }

std::string StopSignal::name() const {
  switch (received) {
    case 0:
      return "";
    case SIGINT:
      return "SIGINT";
    default:
      return "SIGTERM";
  }
}

void StopSignal::ThrowIfRequested(const std::string& done) const {
  if (requested()) throw StoppedError(name() + ": " + done);
}

}  // namespace softmoe
