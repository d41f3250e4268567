// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/errors.h"
#include "core/paths.h"
#include "core/runfiles.h"
#include "core/suggestion.h"

namespace softmoe::experiments {
namespace {

template <typename T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// `asked` must be ids of `known`.
void CheckIds(const std::string& option, const std::string& kind,
              const std::string& grid, const std::vector<std::string>& asked,
              const std::vector<std::string>& known) {
  for (const std::string& id : asked) {
    if (Contains(known, id)) continue;
    throw ConfigError(fmt::format("{} {}: grid '{}' has no such {}; {}", option,
                                  id, grid, kind, Suggestion(id, known)));
  }
}

}  // namespace

const std::vector<std::string>& ShippedGrids() { return Scales(); }

std::filesystem::path GridPath(const std::string& name) {
  if (Contains(ShippedGrids(), name)) {
    return RunfilePath("experiments/grids/" + name + ".toml");
  }
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) {
    return UserPath(name);
  }
  throw ConfigError(fmt::format(
      "no grid '{}'; {}. A grid of your own is given by the path of its file, "
      "which ends in .toml",
      name, Suggestion(name, ShippedGrids())));
}

std::vector<size_t> SelectRuns(const Grid& grid,
                               const std::vector<std::string>& rows,
                               const std::vector<std::string>& corpora) {
  std::vector<std::string> row_ids, corpus_ids;
  for (const GridRow& row : grid.rows) row_ids.push_back(row.id);
  for (const GridCorpus& corpus : grid.corpora) corpus_ids.push_back(corpus.id);
  CheckIds("--rows", "row", grid.name, rows, row_ids);
  CheckIds("--corpora", "corpus", grid.name, corpora, corpus_ids);
  std::vector<size_t> selected;
  for (size_t r = 0; r < grid.runs.size(); ++r) {
    const GridRun& run = grid.runs[r];
    if (!rows.empty() && !Contains(rows, run.row.id)) continue;
    if (!corpora.empty() && !Contains(corpora, run.corpus.id)) continue;
    selected.push_back(r);
  }
  if (selected.empty()) {
    throw ConfigError(fmt::format(
        "--rows and --corpora: grid '{}' has none of these rows on any of "
        "these corpora; `plan` shows which rows are on which",
        grid.name));
  }
  return selected;
}

void CheckSeeds(const std::vector<int64_t>& seeds) {
  std::set<int64_t> seen;
  for (int64_t seed : seeds) {
    // CLI11 reads what is beyond the range as the largest number.
    constexpr int64_t kBeyond = std::numeric_limits<int64_t>::max();
    if (seed < 0 || seed == kBeyond) {
      throw ConfigError(fmt::format(
          "--seeds {}: a seed is an integer >= 0 and below {}", seed, kBeyond));
    }
    if (!seen.insert(seed).second) {
      throw ConfigError(fmt::format("--seeds: {} is listed twice", seed));
    }
  }
}

}  // namespace softmoe::experiments
