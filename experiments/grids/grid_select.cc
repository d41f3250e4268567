// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/grid_select.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/ascii.h"
#include "core/text/suggestion.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_toml.h"

namespace softmoe::experiments {
namespace {

// An upper bound on how many first seeds can be asked for.
constexpr size_t kMostFirstSeeds = 10'000;

// A whole number below 2^63 - 1 in digits only; nullopt for anything else.
std::optional<int64_t> ParseInteger(std::string_view text) {
  const std::optional<int64_t> value = ParseNumber<int64_t>(text);
  const bool good = value >= 0 && value < std::numeric_limits<int64_t>::max();
  return good ? value : std::nullopt;
}

bool IsPath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

bool IsExperiment(const std::string& name) {
  return name == kAllExperiments || Contains(EveryExperimentName(), name);
}

// Throws unless all of `asked` are ids in `known`.
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
  if (IsPath(name)) return UserPath(name);
  throw ConfigError(fmt::format(
      "no grid '{}'; {}. A grid of your own is given by the path of its file, "
      "which ends in .toml",
      name, Suggestion(name, ShippedGrids())));
}

Grid SelectGrid(const std::string& name, const std::string& scale,
                const std::vector<std::string>& overrides,
                const SeedOption& seeds) {
  const std::string scales = fmt::format("{}", fmt::join(ShippedGrids(), ", "));
  if (!scale.empty()) {
    if (IsPath(name) || Contains(ShippedGrids(), name)) {
      throw ConfigError(fmt::format(
          "'{}' is a grid, and --scale belongs to an experiment: {} or {}; "
          "leave --scale out",
          name, fmt::join(EveryExperimentName(), ", "), kAllExperiments));
    }
    return LoadExperiment(name, GridPath(scale), overrides, seeds);
  }
  if (IsExperiment(name)) {
    throw ConfigError(fmt::format(
        "experiment '{}' needs a scale; give --scale={}, or the path of a "
        "grid file",
        name, scales));
  }
  if (Contains(ShippedGrids(), name)) {
    return LoadExperiment(ExperimentNames().front(), GridPath(name), overrides,
                          seeds);
  }
  if (IsPath(name)) return LoadGrid(GridPath(name), overrides, seeds);
  std::vector<std::string> known = ShippedGrids();
  for (const std::string& experiment : EveryExperimentName()) {
    known.push_back(experiment);
  }
  known.push_back(kAllExperiments);
  throw ConfigError(fmt::format(
      "no grid or experiment '{}'; {}. A grid of your own is given by the path "
      "of its file, which ends in .toml",
      name, Suggestion(name, known)));
}

std::vector<std::string> CommandWords(const Grid& grid) {
  std::string file = std::filesystem::absolute(grid.path).string();
  bool shipped = false;
  for (const std::string& name : ShippedGrids()) {
    std::error_code missing;
    if (std::filesystem::equivalent(grid.path, GridPath(name), missing)) {
      file = name;
      shipped = true;
    }
  }
  if (IsMain(grid) && (shipped || grid.experiment.empty())) return {file};
  return {grid.experiment, "--scale=" + file};
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
  std::ranges::stable_sort(selected, {},
                           [&](size_t r) { return grid.runs[r].turn; });
  return selected;
}

SeedOption ParseSeeds(const std::vector<std::string>& words) {
  SeedOption seeds;
  for (const std::string& word : words) {
    if (words.size() == 1 && word.starts_with('x')) {
      const auto first = ParseInteger(std::string_view(word).substr(1));
      if (!first || *first < 1 ||
          static_cast<size_t>(*first) > kMostFirstSeeds) {
        throw ConfigError(fmt::format(
            "--seeds {}: expected xN, the first N seeds, N = 1 to {}", word,
            kMostFirstSeeds));
      }
      seeds.first = static_cast<size_t>(*first);
      return seeds;
    }
    const auto seed = ParseInteger(word);
    if (!seed) {
      throw ConfigError(
          fmt::format("--seeds {}: a seed is an integer >= 0 and below {}; x4 "
                      "alone means the first four",
                      word, std::numeric_limits<int64_t>::max()));
    }
    if (Contains(seeds.listed, *seed)) {
      throw ConfigError(fmt::format("--seeds: {} is listed twice", *seed));
    }
    seeds.listed.push_back(*seed);
  }
  return seeds;
}

}  // namespace softmoe::experiments
