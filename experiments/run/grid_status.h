// SPDX-License-Identifier: Apache-2.0
//
// grid_status.h - the progress of a grid's runs, from what is on disk.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/errors.h"
#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

// The kinds of problems with the files of single runs, none of which hides
// another run.
struct RunProblems {
  bool damaged = false;
  bool unusable = false;  // cannot be read, or written

  // Calls use(). If it throws an error about a run's files, notes the kind of
  // the error and returns it.
  std::optional<Error> Note(const std::function<void()>& use);

  // kUsage if a file is damaged, else kEnvironment if one is unusable, or
  // kDone.
  ExitCode code() const;
};

struct GridStatus {
  std::string text;  // a table, then the problems
  RunProblems problems;
};

// Returns the state, steps, losses, size and time of every run, and the process
// that holds it. Only reads, even while the grid is running. A run whose files
// are damaged or unreadable also has a line in the table.
GridStatus DescribeStatus(const Grid& grid,
                          const std::filesystem::path& grid_folder);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_
