// SPDX-License-Identifier: Apache-2.0
//
// grid_status.h - the progress of a grid's runs, from what is on disk.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_

#include <filesystem>
#include <string>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

struct GridStatus {
  std::string text;      // a table, then the problems
  bool damaged = false;  // whether some file is damaged, or cannot be read
};

// State, steps, losses, size and time of every run, and which process holds it.
// Reads only, also while the grid is running. A run whose files are damaged or
// cannot be read is a line of the table, too.
GridStatus DescribeStatus(const Grid& grid,
                          const std::filesystem::path& grid_folder);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_STATUS_H_
