// SPDX-License-Identifier: Apache-2.0
//
// grid_select.h - finds the grid and the runs that a command line means.
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

// The file of a grid: a shipped one by name, or the user's by path (which has a
// '/' or ends in .toml). Throws ConfigError with a suggestion for an unknown
// name.
std::filesystem::path GridPath(const std::string& name);

// The grid that a command line means: with `scale` (a name or path, as above),
// the experiment `name` at that scale, or "all" of them; otherwise the grid
// `name`, which for a shipped one is its experiment "main". Throws ConfigError
// for unknown names, and for a missing or superfluous scale.
Grid SelectGrid(const std::string& name, const std::string& scale,
                const std::vector<std::string>& overrides,
                const SeedOption& seeds = {});

// The command-line words that select `grid`: {"paper"}, {"tau",
// "--scale=paper"}, {"/home/me/my.toml"}.
std::vector<std::string> CommandWords(const Grid& grid);

// Indices into grid.runs of the runs of these rows and corpora, in training
// order; an empty list means all. Throws ConfigError with a suggestion for an
// unknown id, and if no run is left.
std::vector<size_t> SelectRuns(const Grid& grid,
                               const std::vector<std::string>& rows,
                               const std::vector<std::string>& corpora);

// Parses the words of --seeds: "3", "7" are seeds; "x4" alone is the first
// four. Throws ConfigError for a word that is not a seed and for a repeated
// seed.
SeedOption ParseSeeds(const std::vector<std::string>& words);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_SELECT_H_
