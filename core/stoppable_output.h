// SPDX-License-Identifier: Apache-2.0
//
// stoppable_output.h - lines on stdout and stderr that wait for their reader
// only until somebody asks the process to stop.
//
// A reader that exists but does not read (Ctrl-S on a terminal, `less`, a
// stalled connection) makes a write wait forever, and a loop that waits there
// neither saves nor stops.
//
// Inline, since RunMain needs it and some programs link only RunMain's source.
#ifndef SOFTMOE_CORE_STOPPABLE_OUTPUT_H_
#define SOFTMOE_CORE_STOPPABLE_OUTPUT_H_

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace softmoe {
namespace internal {

// The signal that has asked this process to stop, or 0. StopSignal
// (core/process/stop_signal.h) writes it. It outlives the last StopSignal.
inline std::atomic<int> stop_signal = 0;

// Returns another descriptor of the same pipe or terminal, whose writes take as
// much as there is room for and never wait; -1 if there is none. (O_NONBLOCK on
// `descriptor` would affect all that share it, such as the shell.)
inline int ReopenWithoutWaiting(int descriptor) {
  struct stat kind = {};
  if (fstat(descriptor, &kind) != 0) return -1;
  if (!S_ISFIFO(kind.st_mode) && !isatty(descriptor)) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace internal

// Prints `text` on `out`, stdout or stderr, and flushes it. Once the process
// has been asked to stop, the part that the reader does not take within
// `patience` is dropped. If a write fails, ferror(out) says so.
inline void PrintUnlessStopped(
    std::FILE* out, std::string_view text,
    std::chrono::milliseconds patience = std::chrono::milliseconds(100)) {
  constexpr std::chrono::milliseconds kLook(20);
  std::fflush(out);  // what was printed before
  const int descriptor = fileno(out);
  const int own = internal::ReopenWithoutWaiting(descriptor);
  auto waited = std::chrono::milliseconds(0);  // since the request
  bool ready = false;
  while (!text.empty()) {
    if (own >= 0) {
      const ssize_t written = write(own, text.data(), text.size());
      if (written > 0) text.remove_prefix(static_cast<size_t>(written));
      if (written > 0) continue;
    }
    const bool full = own < 0 ? !ready : errno == EAGAIN || errno == EINTR;
    if (!full) {
      std::fwrite(text.data(), 1, text.size(), out);
      std::fflush(out);
      break;
    }
    // A terminal may claim to be ready although a line's end does not fit.
    pollfd reader = {.fd = descriptor, .events = POLLOUT, .revents = 0};
    ready = poll(&reader, ready ? 0 : 1, static_cast<int>(kLook.count())) > 0;
    if (ready || internal::stop_signal == 0) continue;
    waited += kLook;
    if (waited > patience) break;
  }
  if (own >= 0) close(own);
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_STOPPABLE_OUTPUT_H_
