// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/grid_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/errors.h"
#include "experiments/grids/grid_parts.h"

namespace softmoe::experiments {

const std::vector<std::string>& Scales() {
  static const std::vector<std::string> scales = {"smoke", "mini", "midi",
                                                  "paper"};
  return scales;
}

const std::vector<std::string>& ExperimentNames() {
  static const std::vector<std::string> names = {
      "main",          "tau",        "inference_tau", "jitter",
      "load_variance", "throughput", "compute",       "figures"};
  return names;
}

const std::vector<std::string>& OwnExperimentNames() {
  static const std::vector<std::string> names = {"regime"};
  return names;
}

std::vector<std::string> EveryExperimentName() {
  std::vector<std::string> names = ExperimentNames();
  names.insert(names.end(), OwnExperimentNames().begin(),
               OwnExperimentNames().end());
  return names;
}

bool IsOwnExperiment(const std::string& name) {
  return std::ranges::count(OwnExperimentNames(), name) > 0;
}

bool IsMain(const Grid& grid) {
  return grid.experiment.empty() ||
         grid.experiment == ExperimentNames().front();
}

bool SetsOnlyRuntime(const Grid& grid) {
  return std::ranges::all_of(grid.overrides, [](const std::string& set) {
    return set.starts_with("runtime.");
  });
}

std::string GridRun::paper_id() const {
  const std::string& dataset = !row.paper_dataset.empty() ? row.paper_dataset
                               : !corpus.paper_dataset.empty()
                                   ? corpus.paper_dataset
                                   : corpus.stands_for;
  if (dataset.empty() || row.paper_row.empty()) return "";
  return dataset + "/" + row.paper_row;
}

std::string TokensKey(const Config& config) {
  return fmt::format(
      "{}\n{}\n{}\n{}", config.data.corpus, config.data.max_bytes,
      config.model.vocab_size,
      config.data.normalise == Normalise::kNone ? "" : "normalised\n");
}

std::vector<int64_t> SeedOption::Apply(
    const std::vector<int64_t>& seeds) const {
  if (!listed.empty()) return listed;
  if (first == 0) return seeds;
  std::vector<int64_t> chosen = seeds;
  const int64_t largest = *std::max_element(seeds.begin(), seeds.end());
  for (int64_t next = largest + 1; chosen.size() < first; ++next) {
    if (next == std::numeric_limits<int64_t>::max()) {
      throw ConfigError(fmt::format(
          "--seeds x{}: too few integers follow the grid's largest seed, {}; "
          "list the seeds",
          first, largest));
    }
    chosen.push_back(next);
  }
  chosen.resize(first);
  return chosen;
}

Grid LoadGrid(const std::filesystem::path& path,
              const std::vector<std::string>& overrides,
              const SeedOption& seeds) {
  GridParts parts = ReadGridParts(path, overrides);
  const std::vector<int64_t> own = parts.grid.seeds;
  parts.grid.seeds = seeds.Apply(own);
  parts.grid.other_seeds = parts.grid.seeds != own;
  parts.grid.runs = MakeRuns(parts, parts.rows);
  if (parts.grid.runs.empty()) {
    throw ConfigError(fmt::format(
        "--seeds: no row of {} uses any of the first {} seeds, as every row "
        "chooses later ones; list more",
        path.string(), parts.grid.seeds.size()));
  }
  return std::move(parts.grid);
}

}  // namespace softmoe::experiments
