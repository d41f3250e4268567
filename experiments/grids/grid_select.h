// SPDX-License-Identifier: Apache-2.0
//
// grid_select.h - finds the grid, and the runs of it, that a command line
// means.
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

// The file of a grid: one that ships, given by name, or one of the user's,
// given by a path (which has a '/' or ends in .toml). Throws ConfigError with a
// suggestion for an unknown name.
std::filesystem::path GridPath(const std::string& name);

// What a command line means: with `scale` (a name or a path, as above) the
// experiment `name` at that scale, or "all" of them; without it the grid
// `name`, which for one that ships is its experiment "main". Throws ConfigError
// for unknown names, and for a scale that is missing or superfluous.
Grid SelectGrid(const std::string& name, const std::string& scale,
                const std::vector<std::string>& overrides,
                const SeedOption& seeds = {});

// The words that mean `grid` on a command line: {"paper"}, {"tau",
// "--scale=paper"}, {"/home/me/my.toml"}.
std::vector<std::string> CommandWords(const Grid& grid);

// Indices into grid.runs of the runs of these rows and corpora, in the order in
// which they are to be trained; an empty list means all. Throws ConfigError with
// a suggestion for an unknown id, and if no run is left.
std::vector<size_t> SelectRuns(const Grid& grid,
                               const std::vector<std::string>& rows,
                               const std::vector<std::string>& corpora);

// What the words of --seeds mean: "3", "7" are seeds, "x4" alone is the first
// four. Throws ConfigError for a word that is not a seed, and for one that is
// listed twice.
SeedOption ParseSeeds(const std::vector<std::string>& words);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_SELECT_H_
