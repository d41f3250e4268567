// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/experiment.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/suggestion.h"
#include "experiments/grids/grid_parts.h"
#include "experiments/grids/grid_toml.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::experiments {
namespace {

bool IsPlaced(const Placement& placement, const GridRow& row) {
  return placement.variants.empty() ||
         Contains(placement.variants, row.variant);
}

// The row of main from which a row of an experiment is derived.
const RowPart& Model(const GridParts& parts, const Placement& placement,
                     const toml::table& row) {
  const std::string like = Required(row, "like", "[[rows]]");
  for (const RowPart& model : parts.rows) {
    if (model.row.paper_row == like && IsPlaced(placement, model.row)) {
      return model;
    }
  }
  FailAt(*row.get("like"),
         fmt::format("{} has no row with paper_row = \"{}\"{}; add one there",
                     parts.grid.path.string(), like,
                     placement.variants.empty()
                         ? ""
                         : " of the variants in its [experiments]"));
}

// A row that the experiment defines: a row of main with another name and some
// settings of its own.
RowPart ReadOwnRow(const GridParts& parts, const Placement& placement,
                   const toml::table& table, std::set<std::string>& taken_ids) {
  CheckKeys(table, "[[rows]]", {"id", "like", "label", "paper_row", "config"});
  const RowPart& model = Model(parts, placement, table);
  RowPart part;
  part.table = &table;
  part.row.id = RequiredId(table, "[[rows]]", taken_ids);
  part.row.label = Get<std::string>(table, "label", model.row.label);
  part.row.paper_row = GetName(table, "paper_row", "/");
  part.row.place = TomlPosition(table);
  part.configs = model.configs;
  if (const toml::table* config = Subtable(table, "config")) {
    part.configs.push_back(config);
  }
  return part;
}

std::vector<RowPart> RowsOf(const GridParts& parts, const Placement& placement,
                            const toml::table& file,
                            const toml::table& header) {
  std::vector<RowPart> rows;
  std::set<std::string> taken_ids;
  for (const toml::table* table : TablesOf(file, "rows")) {
    rows.push_back(ReadOwnRow(parts, placement, *table, taken_ids));
  }
  if (!rows.empty()) return rows;
  std::vector<std::string> known;
  for (const RowPart& row : parts.rows) known.push_back(row.row.paper_row);
  const std::vector<std::string> wanted =
      ReadList(header, "main_rows", [&](const toml::node& node) {
        return ReadKnown(node, "row with paper_row", known);
      });
  for (const RowPart& row : parts.rows) {
    if (!IsPlaced(placement, row.row)) continue;
    if (!wanted.empty() && !Contains(wanted, row.row.paper_row)) continue;
    rows.push_back(row);
  }
  return rows;
}

// Replaces the grid's seeds by the experiment's own, if it has any; the grid's
// choices of seeds for corpora are then meaningless.
bool TakeOwnSeeds(const toml::table& header, const Placement& placement,
                  GridParts& parts) {
  const std::vector<int64_t> own = ReadSeeds(header);
  if (own.empty()) return false;
  if (placement.seeds) {
    FailAt(*placement.table->get("seeds"),
           "this experiment has seeds of its own; leave out 'seeds' here");
  }
  parts.grid.seeds = own;
  for (CorpusPart& corpus : parts.corpora) corpus.seeds.reset();
  return true;
}

// Makes the experiment `name` of `parts`, with the seeds of the command line if
// given, else those of the files.
Grid ReadExperiment(const std::string& name, GridParts parts,
                    const SeedOption& seeds) {
  parts.files.push_back(std::make_shared<const toml::table>(ParseTomlFile(
      RunfilePath("experiments/grids/experiments/" + name + ".toml"))));
  const toml::table& file = *parts.files.back();
  CheckKeys(file, "an experiment",
            {"experiment", "evaluations", "rows", "waves"});
  const toml::table* header = Subtable(file, "experiment");
  if (header == nullptr) FailAt(file, "needs an [experiment] table");
  CheckKeys(*header, "[experiment]",
            {"title", "table", "paper_dataset", "main_rows", "seeds"});
  const auto placed = parts.placements.find(name);
  const Placement placement =
      placed == parts.placements.end() ? Placement{} : placed->second;
  const bool own_seeds = TakeOwnSeeds(*header, placement, parts);
  if (!own_seeds && file.get("waves") != nullptr) {
    FailAt(*file.get("waves"), "[[waves]] needs seeds in [experiment]");
  }

  Grid grid = parts.grid;
  grid.experiment = name;
  grid.scale_grid = parts.grid.name;
  grid.table = Required(*header, "table", "[experiment]");
  grid.experiment_title = Required(*header, "title", "[experiment]");
  if (name != ExperimentNames().front()) {
    grid.name = name;
    grid.title = grid.experiment_title;
  }
  const std::string dataset = Get<std::string>(*header, "paper_dataset", "");
  std::vector<RowPart> rows = RowsOf(parts, placement, file, *header);
  std::optional<Waves> waves;
  if (own_seeds) waves.emplace(file, parts.grid.seeds, rows);
  for (RowPart& row : rows) {
    row.seeds = waves ? Places(waves->PlacesOf(row.row.id))
                      : Intersection(row.seeds, placement.seeds);
    row.corpora = Intersection(row.corpora, placement.corpora);
    row.row.paper_dataset = dataset;
    row.evaluations = parts.grid.evaluations;
    ReadEvaluations(file, &row.evaluations);
  }
  const std::vector<int64_t> own = parts.grid.seeds;
  grid.seeds = parts.grid.seeds = seeds.Apply(own);
  grid.other_seeds = grid.seeds != own;
  grid.runs = MakeRuns(parts, rows);
  if (waves) {
    for (GridRun& run : grid.runs) {
      const auto place = std::ranges::find(grid.seeds, run.seed);
      run.turn = waves->Turn(run.row.id,
                             static_cast<size_t>(place - grid.seeds.begin()));
    }
  }
  if (grid.runs.empty()) {
    throw ConfigError(
        fmt::format("{}: experiment '{}' has no run at this scale; change "
                    "[experiments.{}] or --seeds",
                    parts.grid.path.string(), name, name));
  }
  grid.rows.clear();
  for (const RowPart& row : rows) {
    if (std::ranges::any_of(grid.runs, [&](const GridRun& run) {
          return run.row.id == row.row.id;
        })) {
      grid.rows.push_back(row.row);
    }
  }
  std::erase_if(grid.corpora, [&](const GridCorpus& corpus) {
    return std::ranges::none_of(grid.runs, [&](const GridRun& run) {
      return run.corpus.id == corpus.id;
    });
  });
  return grid;
}

// Checks that a name means one configuration apart from the seed.
void CheckNames(const std::vector<Grid>& experiments) {
  std::map<std::string, const GridRun*> named;
  for (const Grid& grid : experiments) {
    for (const GridRun& run : grid.runs) {
      const GridRun* other =
          named.emplace(run.corpus.id + "/" + run.row.id, &run).first->second;
      Config there = other->config;
      there.training.seed = run.config.training.seed;
      if (ConfigHash(there) == ConfigHash(run.config)) continue;
      throw ConfigError(fmt::format(
          "{}: row '{}' has other settings on corpus '{}' than the row of that "
          "name at {}: {}. Rename one of them",
          run.row.place, run.row.id, run.corpus.id, other->row.place,
          trainer::DescribeConfigDifferences(
              trainer::CompareConfigs(there, run.config))));
    }
  }
}

void AddEvaluations(const trainer::EvaluationPlan& more,
                    trainer::EvaluationPlan* plan) {
  std::vector<double>& factors = plan->inference_tau_factors;
  factors.insert(factors.end(), more.inference_tau_factors.begin(),
                 more.inference_tau_factors.end());
  std::ranges::sort(factors);
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  for (const std::string& task : more.tasks) {
    if (std::ranges::find(plan->tasks, task) != plan->tasks.end()) continue;
    plan->tasks.push_back(task);
  }
  plan->active_histogram |= more.active_histogram;
  plan->router_health |= more.router_health;
  plan->keep_checkpoint |= more.keep_checkpoint;
}

// The RunIdentityKey of the run's row on its corpus, whatever the seed.
std::string RowIdentityKey(GridRun run) {
  run.config.training.seed = 0;
  return RunIdentityKey(run);
}

// Gives every run the same folder and the same evaluations in all experiments.
// Folders are named by `filed`, the experiments with the seeds of the files,
// since --seeds may leave out the first one that has a row.
void ShareRuns(const std::vector<Grid>& filed, std::vector<Grid>& experiments) {
  std::map<std::string, std::string> names;
  for (const Grid& grid : filed) {
    for (const GridRun& run : grid.runs) {
      names.emplace(RowIdentityKey(run), run.row.id);
    }
  }
  std::map<std::string, GridRun> shared;
  for (Grid& grid : experiments) {
    for (GridRun& run : grid.runs) {
      run.first_experiment = grid.experiment;
      const auto [entry, is_new] = shared.emplace(RunIdentityKey(run), run);
      if (!is_new) {
        AddEvaluations(run.evaluations, &entry->second.evaluations);
      }
    }
  }
  for (Grid& grid : experiments) {
    for (GridRun& run : grid.runs) {
      const GridRun& first = shared.at(RunIdentityKey(run));
      run.first_experiment = first.first_experiment;
      run.first_row = names.at(RowIdentityKey(run));
      run.evaluations = first.evaluations;
    }
  }
}

// The names of the experiments at this scale, in their order.
std::vector<std::string> NamesAt(const GridParts& parts) {
  std::vector<std::string> names = EveryExperimentName();
  std::erase_if(names, [&](const std::string& name) {
    return IsOwnExperiment(name) && !parts.placements.contains(name);
  });
  return names;
}

// The experiments of the scale that can be read. `refused` is called for each
// that cannot, and may throw.
std::vector<Grid> ReadExperiments(
    const GridParts& parts, const SeedOption& seeds,
    const std::function<void(const std::string& name, const ConfigError& why)>&
        refused) {
  std::vector<Grid> filed, experiments;
  for (const std::string& name : NamesAt(parts)) {
    try {
      filed.push_back(ReadExperiment(name, parts, {}));
      experiments.push_back(ReadExperiment(name, parts, seeds));
    } catch (const ConfigError& why) {
      refused(name, why);
    }
  }
  ShareRuns(filed, experiments);
  return experiments;
}

// The readable experiments of the scale; `needed`, or for "all" every one, must
// be readable. Others may not be, since overrides or seeds of the command line
// may fit only one experiment. If it gives neither, the files are at fault, so
// all must be readable.
std::vector<Grid> ReadNeeded(const GridParts& parts, const SeedOption& seeds,
                             const std::string& needed) {
  const bool every =
      needed == kAllExperiments || (parts.grid.overrides.empty() &&
                                    seeds.listed.empty() && seeds.first == 0);
  std::vector<Grid> experiments = ReadExperiments(
      parts, seeds, [&](const std::string& name, const ConfigError& why) {
        if (every || needed == name) throw why;
      });
  CheckNames(experiments);
  return experiments;
}

// Every run of these experiments of one scale, once, as the grid "all".
// `corpora` are those of the scale's file.
Grid UnionOf(const std::vector<Grid>& experiments,
             const std::vector<GridCorpus>& corpora) {
  Grid all = experiments.front();
  all.name = all.experiment = kAllExperiments;
  all.title = "Every table and figure of the paper";
  all.table.clear();
  all.corpora.clear();
  all.rows.clear();
  all.runs.clear();
  std::set<std::string> seen, rows;
  for (const Grid& grid : experiments) {
    for (const GridRun& run : grid.runs) {
      if (!seen.insert(RunIdentityKey(run)).second) continue;
      all.runs.push_back(run);
      if (rows.insert(run.row.id).second) all.rows.push_back(run.row);
    }
  }
  // An experiment may be on a corpus that main lacks.
  for (const GridCorpus& corpus : corpora) {
    if (std::ranges::any_of(all.runs, [&](const GridRun& run) {
          return run.corpus.id == corpus.id;
        })) {
      all.corpora.push_back(corpus);
    }
  }
  // Runs are ordered corpus by corpus, as in every grid.
  const auto place = [&](const GridRun& run) {
    return std::ranges::find(all.corpora, run.corpus.id, &GridCorpus::id) -
           all.corpora.begin();
  };
  std::ranges::stable_sort(all.runs, {}, place);
  return all;
}

}  // namespace

std::string RunIdentityKey(const GridRun& run) {
  return run.corpus.id + "/" + ConfigHash(run.config);
}

std::vector<Grid> LoadExperiments(const std::filesystem::path& scale,
                                  const std::vector<std::string>& overrides,
                                  const SeedOption& seeds) {
  return ReadNeeded(ReadGridParts(scale, overrides), seeds, kAllExperiments);
}

std::vector<Grid> ReadableExperiments(const std::filesystem::path& scale,
                                      const std::vector<std::string>& overrides,
                                      std::vector<std::string>* problems) {
  return ReadExperiments(
      ReadGridParts(scale, overrides), /*seeds=*/{},
      [&](const std::string& name, const ConfigError& why) {
        problems->push_back(fmt::format("experiment {}: {}", name, why.what()));
      });
}

bool TakesEveryRow(const Grid& experiment, const Grid& scale) {
  return std::ranges::equal(experiment.rows, scale.rows, {}, &GridRow::id,
                            &GridRow::id);
}

Grid LoadExperiment(const std::string& name, const std::filesystem::path& scale,
                    const std::vector<std::string>& overrides,
                    const SeedOption& seeds) {
  std::vector<std::string> known = EveryExperimentName();
  known.push_back(kAllExperiments);
  if (!Contains(known, name)) {
    throw ConfigError(
        fmt::format("no experiment '{}'; {}", name, Suggestion(name, known)));
  }
  const GridParts parts = ReadGridParts(scale, overrides);
  std::vector<Grid> experiments = ReadNeeded(parts, seeds, name);
  if (name == kAllExperiments) {
    experiments.resize(ExperimentNames().size());
    return UnionOf(experiments, parts.grid.corpora);
  }
  const auto found = std::ranges::find(experiments, name, &Grid::experiment);
  if (found == experiments.end()) {
    throw ConfigError(fmt::format(
        "{}: experiment '{}' is not run at this scale: [experiments] does not "
        "name it. `list` shows the scales that have it",
        scale.string(), name));
  }
  return *found;
}

}  // namespace softmoe::experiments
