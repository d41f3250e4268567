// SPDX-License-Identifier: Apache-2.0
//
// isolated_call.h - tries in a child process what a library might not survive
// when it reads a foreign file (DESIGN.md, ruling 11).
#ifndef SOFTMOE_CORE_PROCESS_ISOLATED_CALL_H_
#define SOFTMOE_CORE_PROCESS_ISOLATED_CALL_H_

#include <cstdint>
#include <functional>
#include <string>

namespace softmoe {

struct IsolationLimits {
  int64_t memory_bytes = int64_t{1} << 30;  // beyond what we have mapped now
  double seconds = 10;                      // wall clock
  int64_t value_bytes = 64 << 10;           // of the value passed back
};

struct IsolatedResult {
  bool completed = false;
  std::string value;    // what the body returned, if completed
  std::string failure;  // "crashed (Segmentation fault)", "ran longer than
                        // 10 s", "failed: WHAT", ... if not
};

// Calls `body` in a forked child that prints nothing, writes no core file and
// ends at the limits, and returns what `body` returned. Whatever `body` does,
// this process goes on. The child has only the calling thread, and a lock that
// another thread held is never released in it. So call this before pools start
// work, and let `body` use no threads. Throws EnvironmentError if there can be
// no child.
IsolatedResult CallIsolated(const std::function<std::string()>& body,
                            const IsolationLimits& limits);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_ISOLATED_CALL_H_
