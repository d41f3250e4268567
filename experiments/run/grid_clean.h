// SPDX-License-Identifier: Apache-2.0
//
// grid_clean.h - what a grid's folder no longer needs.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

enum class Waste {
  kTemporary,   // .NAME.PID.N.tmp of a process that is gone
  kCheckpoint,  // of a finished run
  kRun,         // the folder of a run that the grid does not have
};

struct WasteItem {
  Waste kind;
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string reason;
};

// What could go from `grid_folder`, in order of the paths. Names that neither
// the trainer nor the grid give to files, links, and folders with anything
// else in them are never among it.
std::vector<WasteItem> FindWaste(const Grid& grid,
                                 const std::filesystem::path& grid_folder);

// Deletes it. Throws EnvironmentError if a process works in the folder of a
// run, or a file cannot be deleted.
void DeleteWaste(const std::vector<WasteItem>& items);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_CLEAN_H_
