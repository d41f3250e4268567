// SPDX-License-Identifier: Apache-2.0
//
// stop_signal.h - SIGINT, SIGTERM and SIGHUP (a closed terminal; not if it is
// ignored already, as under nohup) as a request that long loops can honor.
//
// The first signal only sets a flag, so that the loop can save its state and
// throw StoppedError (exit 75). The second one ends the process at once, as if
// no handler were installed: the user means it, and files are written whole or
// not at all (atomic_file.h). SIGHUP never counts as the first or the second of
// two, since a terminal that closes may send it more than once. Nor does what
// kill() sends within a second after the first: `timeout 60 PROGRAM` signals
// the program, and at once its process group. A second Ctrl-C counts at once.
//
// Meanwhile SIGPIPE is ignored: Ctrl-C also ends `tee` behind a pipe, and
// printing must then fail instead of ending the process before it has saved.
// Nor may a reader that does not read hold up the loop, so whatever such a loop
// prints goes through PrintUnlessStopped (stoppable_output.h).
#ifndef SOFTMOE_CORE_PROCESS_STOP_SIGNAL_H_
#define SOFTMOE_CORE_PROCESS_STOP_SIGNAL_H_

#include <string>

namespace softmoe {

// All this holds while at least one object exists; the last one restores the
// previous handlers. Nested objects share the flag; the next outermost one
// clears it.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // True once a signal has come. Cheap enough for every step.
  bool requested() const;
  // "SIGINT", "SIGTERM", "SIGHUP", or "" if none has come.
  std::string name() const;
  // Throws StoppedError("SIGINT: DONE") if requested. `done` says what state
  // the user will find and how to go on.
  void ThrowIfRequested(const std::string& done) const;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_STOP_SIGNAL_H_
