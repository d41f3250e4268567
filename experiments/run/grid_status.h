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

  // Calls use(), and notes the kind of what it throws about a run's files and
  // returns it.
  std::optional<Error> Note(const std::function<void()>& use);

  // kUsage if a file is damaged, or else kEnvironment if one is unusable.
  ExitCode code() const;
};

struct GridStatus {
  std::string text;  // a table, then the problems
  RunProblems problems;
};

// State, steps, losses, size and time of every run, and which process holds it.
// Reads only, also while the grid is running. A run whose files are damaged or
// cannot be read is a line of the table, too.
GridStatus DescribeStatus(const Grid& grid,
                          const std::filesystem::path& grid_folder);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_
