// SPDX-License-Identifier: Apache-2.0
//
// grid_select.h - which grid, and which of its runs, a command line means.
#ifndef SOFTMOE_EXPERIMENTS_GRID_SELECT_H_
#define SOFTMOE_EXPERIMENTS_GRID_SELECT_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grid_file.h"

namespace softmoe::experiments {

// Names of the grids that ship with the program: one for each scale.
const std::vector<std::string>& ShippedGrids();

// The file of a grid: of one that ships, by name, or of the user's, by a path
// (one that has a '/' or ends in .toml). Throws ConfigError with a suggestion
// for an unknown name.
std::filesystem::path GridPath(const std::string& name);

// Indices into grid.runs of the runs of these rows and corpora; an empty list
// means all. Throws ConfigError with a suggestion for an unknown id, and if no
// run is left.
std::vector<size_t> SelectRuns(const Grid& grid,
                               const std::vector<std::string>& rows,
                               const std::vector<std::string>& corpora);

// Throws ConfigError for a seed that is negative or listed twice.
void CheckSeeds(const std::vector<int64_t>& seeds);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRID_SELECT_H_
