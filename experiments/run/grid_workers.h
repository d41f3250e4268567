// SPDX-License-Identifier: Apache-2.0
//
// grid_workers.h - runs of a grid side by side, a child process for each.
//
// Processes rather than threads: a signal is a request to the loop of one run,
// the kernels choose one instruction set per process, and what goes wrong in
// one run's process (memory, a crash) harms no other.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_WORKERS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_WORKERS_H_

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::experiments {

struct WorkerEnd {
  size_t job = 0;
  ExitCode code = ExitCode::kDone;
  bool done = false;    // what the body returned
  std::string problem;  // what it threw, or which signal ended it
};

// Child processes that save and end when this process asks them to, or when it
// ends for any reason.
class GridWorkers {
 public:
  GridWorkers() = default;
  ~GridWorkers();  // asks them to stop and waits
  GridWorkers(const GridWorkers&) = delete;
  GridWorkers& operator=(const GridWorkers&) = delete;

  // Calls `body` in a child. This process must have no other threads. Throws
  // EnvironmentError if the system cannot create a process.
  void Start(size_t job, const std::function<bool()>& body);
  // Acts like SIGTERM. However many signals reach a child, it saves and ends.
  void AskToStop() const;
  // Returns the children that have ended; waits up to 0.2 s for one, but not
  // after a signal.
  std::vector<WorkerEnd> Wait();

  size_t size() const { return workers_.size(); }

 private:
  struct Worker {
    size_t job = 0;
    pid_t process = -1;
    int pipe = -1;
    std::string problem;  // read so far
  };

  std::vector<Worker> workers_;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_WORKERS_H_
