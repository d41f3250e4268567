// SPDX-License-Identifier: Apache-2.0
//
// grid_clean.h - finds and deletes what a grid's folder does not need.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

enum class StaleKind {
  kTemporary,   // .NAME.PID.N.tmp of a dead process
  kCheckpoint,  // of a finished run that has all evaluations of its plan
  kRun,         // folder of a run that the grid does not have
};

struct StaleItem {
  StaleKind kind;
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string reason;
};

// Returns everything in `grid_folder` that could be deleted, ordered by path.
// Of the runs that share a folder, the first determines which evaluations need
// its checkpoint. Never includes links, files whose names neither the trainer
// nor the grid gives, or folders that contain anything else.
std::vector<StaleItem> FindStale(const Grid& grid,
                                 const std::filesystem::path& grid_folder);

// Deletes `items`, which FindStale found in `grid_folder`. Throws
// EnvironmentError before deleting any if a process is working on a run there
// or in a folder that contains an item, and also if a file cannot be deleted.
void DeleteStale(const std::filesystem::path& grid_folder,
                 const std::vector<StaleItem>& items);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_
