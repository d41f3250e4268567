// SPDX-License-Identifier: Apache-2.0
//
// grid_parts.h - a grid file, read and checked but not yet expanded into runs.
// grid_file.cc makes one grid from it, experiment.cc several.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_GRID_PARTS_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_GRID_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_toml.h"
#include "core/config/toml.h"
#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

// Positions in a list of the grid file, which stay valid when --seeds replaces
// that list; nullopt: all, including those that --seeds adds.
using Places = std::optional<std::set<size_t>>;

Places Intersection(const Places& a, const Places& b);

// The list of seeds at 'seeds' of `table`; empty if there is none.
std::vector<int64_t> ReadSeeds(const toml::table& table);

struct CorpusPart {
  const toml::table* table;
  GridCorpus corpus;
  Places seeds;
  ConfigDraft draft;  // defaults, the grid's configuration, the corpus's
};

struct RowPart {
  const toml::table* table;  // where the row is written
  GridRow row;
  std::vector<const toml::table*> configs;  // later ones override earlier ones
  Places seeds, corpora;
  trainer::EvaluationPlan evaluations;
};

// [experiments.NAME]: what an experiment is run on at this scale.
struct Placement {
  const toml::table* table = nullptr;
  Places corpora, seeds;
  std::vector<std::string> variants;  // of the rows of main; empty: all
};

// [[waves]] of an experiment with its own seeds: the seeds of each row, and the
// training order, which goes wave by wave and, within a wave, seed by seed over
// all rows.
class Waves {
 public:
  // Throws ConfigError with the place for unknown rows and seeds, a row with a
  // repeated seed, and a row without seeds.
  Waves(const toml::table& file, const std::vector<int64_t>& seeds,
        const std::vector<RowPart>& rows);

  // Positions in `seeds`.
  std::set<size_t> PlacesOf(const std::string& row) const;
  // GridRun::turn for a row and one of its places.
  int64_t Turn(const std::string& row, size_t place) const;

 private:
  size_t num_seeds_;
  std::map<std::pair<std::string, size_t>, int64_t> wave_;
};

struct GridParts {
  std::vector<std::shared_ptr<const toml::table>> files;  // own the tables
  Grid grid;  // no runs; the seeds of the file
  std::vector<CorpusPart> corpora;
  std::vector<RowPart> rows;
  std::map<std::string, Placement> placements;  // by the experiment's name
};

// Reads a grid file. Throws what LoadGrid throws, but does not check
// configurations.
GridParts ReadGridParts(const std::filesystem::path& path,
                        const std::vector<std::string>& overrides);

// Reads [evaluations] of a grid or an experiment over the existing plan.
void ReadEvaluations(const toml::table& file, trainer::EvaluationPlan* plan);

// Runs of these rows in the order corpus, row, seed of `parts.grid`, all with
// the grid's overrides. Throws ConfigError for invalid configurations and for
// too many runs.
std::vector<GridRun> MakeRuns(const GridParts& parts,
                              const std::vector<RowPart>& rows);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_PARTS_H_
