// SPDX-License-Identifier: Apache-2.0
//
// grid_select.h - which grid, and which of its runs, a command line means.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_GRID_SELECT_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_GRID_SELECT_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

// Names of the grids that ship with the program: one for each scale.
const std::vector<std::string>& ShippedGrids();

// The file of a grid: of one that ships, by name, or of the user's, by a path
// (one that has a '/' or ends in .toml). Throws ConfigError with a suggestion
// for an unknown name.
std::filesystem::path GridPath(const std::string& name);

// What a command line means: with `scale` (a name or a path, as above) the
// experiment `name` at that scale, "all" of them, or, without, the grid `name`;
// one that ships is its experiment "main". Throws ConfigError for names that
// there are not, and for a scale too few or too many.
Grid SelectGrid(const std::string& name, const std::string& scale,
                const std::vector<std::string>& overrides,
                const SeedOption& seeds = {});

// The words of a command line that mean `grid`: {"paper"}, {"tau",
// "--scale=paper"}, {"/home/me/my.toml"}.
std::vector<std::string> CommandWords(const Grid& grid);

// Indices into grid.runs of the runs of these rows and corpora; an empty list
// means all. Throws ConfigError with a suggestion for an unknown id, and if no
// run is left.
std::vector<size_t> SelectRuns(const Grid& grid,
                               const std::vector<std::string>& rows,
                               const std::vector<std::string>& corpora);

// What the words of --seeds mean, "3", "7" or "x4" alone: the first four. Throws
// ConfigError for what is no seed, and for one that is listed twice.
SeedOption ParseSeeds(const std::vector<std::string>& words);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_SELECT_H_
