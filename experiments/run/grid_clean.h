// SPDX-License-Identifier: Apache-2.0
//
// grid_clean.h - finds and deletes what a grid's folder no longer needs.
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

// Everything in `grid_folder` that could be deleted, ordered by path. The first
// of the runs that share a folder says which evaluations need its checkpoint.
// Never includes links, files whose names neither the trainer nor the grid
// gives, or folders that contain anything else.
std::vector<StaleItem> FindStale(const Grid& grid,
                                 const std::filesystem::path& grid_folder);

// Deletes the items, found in `grid_folder`. Throws EnvironmentError before the
// first if a process works on any run there or in a folder that has one of
// them, and where a file cannot be deleted.
void DeleteStale(const std::filesystem::path& grid_folder,
                 const std::vector<StaleItem>& items);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_
