// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/grid_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/config/config_fields.h"
#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "experiments/grids/grid_select.h"
#include "experiments/grids/grid_toml.h"

namespace softmoe::experiments {
namespace {

// Every run is held in memory and must be trained.
constexpr size_t kMaxRuns = 10'000;

int64_t ReadSeed(const toml::node& node) {
  constexpr int64_t kLimit = std::numeric_limits<int64_t>::max();
  const std::optional<int64_t> seed = node.value_exact<int64_t>();
  if (!seed || *seed < 0 || *seed == kLimit) {
    FailAt(node,
           fmt::format("a seed must be an integer >= 0 and below {}", kLimit));
  }
  return *seed;
}

bool Has(const Places& places, size_t place) {
  return !places || places->contains(place);
}

// The elements of the grid's list `all` that `table` chooses at `key`; `read`
// turns nodes into values.
template <typename T, typename Read>
Places Choose(const toml::table& table, const std::string& key,
              const std::vector<T>& all, Read read) {
  if (table.get(key) == nullptr) return std::nullopt;
  std::set<size_t> places;
  for (const T& value : ReadList(table, key, read)) {
    const auto found = std::find(all.begin(), all.end(), value);
    places.insert(static_cast<size_t>(found - all.begin()));
  }
  return places;
}

// The elements of `all`, the list of the "grid" or "experiment" (`whose`), that
// 'seeds' of `table` chooses.
Places ChooseSeeds(const toml::table& table, const std::vector<int64_t>& all,
                   const std::string& whose = "grid") {
  return Choose(table, "seeds", all, [&](const toml::node& node) {
    const int64_t seed = ReadSeed(node);
    if (!Contains(all, seed)) {
      FailAt(node,
             fmt::format("the {} has no seed {}; add it to the seeds of [{}], "
                         "which are {}, or leave it out here",
                         whose, seed, whose, fmt::join(all, ", ")));
    }
    return seed;
  });
}

Places ChooseCorpora(const toml::table& table,
                     const std::vector<GridCorpus>& corpora) {
  std::vector<std::string> ids;
  for (const GridCorpus& corpus : corpora) ids.push_back(corpus.id);
  return Choose(table, "corpora", ids, [&](const toml::node& node) {
    return ReadKnown(node, "corpus", ids);
  });
}

void ReadCluster(const toml::table& table, Cluster& cluster) {
  // Every machine lies within; bytes, and hours of real runs, fit into
  // integers.
  constexpr double kLeastFlops = 1e6, kMostFlops = 1e21, kLeastMfu = 1e-6,
                   kLeastBytes = 1e6, kMostBytes = 1e18;
  cluster.peak_flops = NumberWithin(table, "peak_flops", kLeastFlops,
                                    kMostFlops, cluster.peak_flops);
  cluster.assumed_mfu =
      NumberWithin(table, "assumed_mfu", kLeastMfu, 1, cluster.assumed_mfu);
  cluster.gpu_bytes = NumberWithin(table, "gpu_bytes", kLeastBytes, kMostBytes,
                                   cluster.gpu_bytes);
  cluster.core_flops = NumberWithin(table, "core_flops", kLeastFlops,
                                    kMostFlops, cluster.core_flops);
  cluster.gpus_per_node =
      Get<int64_t>(table, "gpus_per_node", cluster.gpus_per_node);
  if (cluster.gpus_per_node < 1) {
    FailAt(*table.get("gpus_per_node"), "'gpus_per_node' must be at least 1");
  }
  const toml::node* sbatch = table.get("sbatch");
  if (sbatch == nullptr) return;
  if (!sbatch->is_array())
    FailAt(*sbatch, "'sbatch' must be a list of options");
  for (const toml::node& node : *sbatch->as_array()) {
    const std::string option = node.value_exact<std::string>().value_or("");
    if (!option.starts_with("--") || option.find('\n') != option.npos) {
      FailAt(node, "expected an option of sbatch, such as \"--partition=gpu\"");
    }
    cluster.sbatch.push_back(option);
  }
}

void ReadHeader(const toml::table& root, Grid& grid) {
  const toml::table* header = Subtable(root, "grid");
  if (header == nullptr) FailAt(root, "a grid needs a [grid] table");
  CheckKeys(*header, "[grid]", {"name", "scale", "title", "seeds"});
  grid.name = RequiredName(*header, "name", "[grid]");
  if (Contains(ShippedGrids(), grid.name) &&
      ReadWholeFile(grid.path) != ReadWholeFile(GridPath(grid.name))) {
    FailAt(*header->get("name"),
           fmt::format("name '{}' belongs to a grid of this program, whose "
                       "folder, record and claims this file would share; "
                       "choose another name",
                       grid.name));
  }
  grid.scale = Required(*header, "scale", "[grid]");
  grid.title = Get<std::string>(*header, "title", "");
  if (!Contains(Scales(), grid.scale)) {
    FailAt(*header->get("scale"),
           fmt::format("scale '{}': expected one of {}", grid.scale,
                       fmt::join(Scales(), ", ")));
  }
  grid.seeds = ReadSeeds(*header);
  if (grid.seeds.empty()) FailAt(*header, "[grid] needs seeds = [SEED, ...]");
  if (const toml::table* cluster = Subtable(root, "cluster")) {
    CheckKeys(*cluster, "[cluster]",
              {"peak_flops", "assumed_mfu", "gpu_bytes", "gpus_per_node",
               "sbatch", "core_flops"});
    ReadCluster(*cluster, grid.cluster);
  }
}

// The dataset of the paper at `key`, or "".
std::string GetDataset(const toml::table& table, const std::string& key) {
  if (Get<std::string>(table, key, "").empty()) return "";
  return ReadKnown(*table.get(key), "dataset", {"owt", "c4"}, "the paper");
}

CorpusPart ReadCorpus(const toml::table& table, const ConfigDraft& base,
                      const std::vector<int64_t>& seeds,
                      std::set<std::string>& taken_ids) {
  CheckKeys(table, "[[corpora]]",
            {"id", "title", "paper_dataset", "stands_for", "gpus", "seeds",
             "config"});
  GridCorpus corpus;
  corpus.id = RequiredId(table, "[[corpora]]", taken_ids);
  corpus.title = Required(table, "title", "[[corpora]]");
  corpus.paper_dataset = GetDataset(table, "paper_dataset");
  corpus.stands_for = GetDataset(table, "stands_for");
  if (!corpus.stands_for.empty() && !corpus.paper_dataset.empty()) {
    FailAt(*table.get("stands_for"),
           "a corpus of the paper stands for nothing but itself; leave out "
           "'stands_for' or 'paper_dataset'");
  }
  corpus.gpus = Get<int64_t>(table, "gpus", 0);
  if (corpus.gpus < 0 || corpus.gpus > kMaxSequences) {
    FailAt(*table.get("gpus"),
           fmt::format("'gpus' must be from 0 to {}", kMaxSequences));
  }
  ConfigDraft draft = base;
  if (const toml::table* config = Subtable(table, "config")) {
    draft.Apply(*config);
  }
  return {&table, corpus, ChooseSeeds(table, seeds), draft};
}

// `grid` must already have its corpora and the file's seeds.
RowPart ReadRow(const toml::table& table, const Grid& grid,
                std::set<std::string>& taken_ids) {
  CheckKeys(
      table, "[[rows]]",
      {"id", "label", "paper_row", "variant", "corpora", "seeds", "config"});
  GridRow row;
  row.id = RequiredId(table, "[[rows]]", taken_ids);
  row.label = Required(table, "label", "[[rows]]");
  row.paper_row = GetName(table, "paper_row", "/");
  row.variant = GetName(table, "variant");
  if (row.variant.ends_with("acc_norm")) {
    FailAt(*table.get("variant"),
           fmt::format("variant '{}': names that end in acc_norm are reserved "
                       "for results by that reading of accuracies; choose "
                       "another",
                       row.variant));
  }
  row.place = TomlPosition(table);
  RowPart part{&table,
               row,
               {},
               ChooseSeeds(table, grid.seeds),
               ChooseCorpora(table, grid.corpora),
               grid.evaluations};
  if (const toml::table* config = Subtable(table, "config")) {
    part.configs.push_back(config);
  }
  return part;
}

// Positions in the list of seeds of those that a row has on corpus number `c`.
std::vector<size_t> SeedsOf(const CorpusPart& corpus, size_t c,
                            const RowPart& row, size_t num_seeds) {
  std::vector<size_t> places;
  if (!Has(row.corpora, c)) return places;
  for (size_t s = 0; s < num_seeds; ++s) {
    if (Has(corpus.seeds, s) && Has(row.seeds, s)) places.push_back(s);
  }
  return places;
}

// Throws if the choices leave a row or a corpus without runs.
void CheckEachHasRuns(const std::vector<CorpusPart>& corpora,
                      const std::vector<RowPart>& rows, size_t num_seeds) {
  std::vector<bool> row_runs(rows.size()), corpus_runs(corpora.size());
  for (size_t c = 0; c < corpora.size(); ++c) {
    for (size_t r = 0; r < rows.size(); ++r) {
      if (SeedsOf(corpora[c], c, rows[r], num_seeds).empty()) continue;
      row_runs[r] = corpus_runs[c] = true;
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    if (row_runs[r]) continue;
    FailAt(*rows[r].table,
           fmt::format("row '{}' has no run: it has no seed in common with its "
                       "corpora; change 'seeds' or 'corpora' here, or 'seeds' "
                       "there",
                       rows[r].row.id));
  }
  for (size_t c = 0; c < corpora.size(); ++c) {
    if (corpus_runs[c]) continue;
    FailAt(
        *corpora[c].table,
        fmt::format("corpus '{}' has no run: every row chose others; leave it "
                    "out, or name it in the 'corpora' of a row",
                    corpora[c].corpus.id));
  }
}

// The paper's rows that a row is, or stands for, one for each corpus.
std::set<std::string> PaperIdsOf(const std::vector<CorpusPart>& corpora,
                                 const RowPart& row) {
  std::set<std::string> ids;
  for (size_t c = 0; c < corpora.size(); ++c) {
    if (!Has(row.corpora, c)) continue;
    GridRun run;
    run.corpus = corpora[c].corpus;
    run.row = row.row;
    ids.insert(run.paper_id());
  }
  ids.erase("");
  return ids;
}

// Throws if rows with and without a variant stand for the same row of the
// paper. Results have a document for each variant, and rows without a variant
// are in all of them, so both would claim the same line.
void CheckVariants(const std::vector<CorpusPart>& corpora,
                   const std::vector<RowPart>& rows) {
  for (size_t later = 0; later < rows.size(); ++later) {
    const GridRow& row = rows[later].row;
    for (size_t r = 0; r < later; ++r) {
      const GridRow& other = rows[r].row;
      if (row.variant.empty() == other.variant.empty()) continue;
      std::vector<std::string> shared;
      std::ranges::set_intersection(PaperIdsOf(corpora, rows[later]),
                                    PaperIdsOf(corpora, rows[r]),
                                    std::back_inserter(shared));
      if (shared.empty()) continue;
      const std::string& variant =
          row.variant.empty() ? other.variant : row.variant;
      FailAt(*rows[later].table,
             fmt::format("rows '{}' and '{}' (at {}) are both the paper's "
                         "{}, and only '{}' has a variant, '{}'; give the "
                         "other one a 'variant', too, or no 'paper_row'",
                         row.id, other.id, other.place, shared.front(),
                         row.variant.empty() ? other.id : row.id, variant));
    }
  }
}

// Reads [experiments] for a grid that already has its corpora and the file's
// seeds.
std::map<std::string, Placement> ReadPlacements(const toml::table& root,
                                                const Grid& grid) {
  std::map<std::string, Placement> placements;
  const toml::table* all = Subtable(root, "experiments");
  if (all == nullptr) return placements;
  CheckKeys(*all, "[experiments]", EveryExperimentName());
  std::vector<std::string> variants;
  for (const GridRow& row : grid.rows) variants.push_back(row.variant);
  for (const auto& [key, node] : *all) {
    const std::string name(key.str());
    const std::string where = "[experiments." + name + "]";
    if (!node.is_table()) FailAt(node, where + " must be a table");
    const toml::table& table = *node.as_table();
    CheckKeys(table, where, {"corpora", "seeds", "variants"});
    placements[name] = {
        .table = &table,
        .corpora = ChooseCorpora(table, grid.corpora),
        .seeds = ChooseSeeds(table, grid.seeds),
        .variants = ReadList(table, "variants", [&](const toml::node& item) {
          return ReadKnown(item, "row of variant", variants);
        })};
  }
  return placements;
}

}  // namespace

Places Intersection(const Places& a, const Places& b) {
  if (!a || !b) return a ? a : b;
  std::set<size_t> both;
  std::set_intersection(a->begin(), a->end(), b->begin(), b->end(),
                        std::inserter(both, both.begin()));
  return both;
}

std::vector<int64_t> ReadSeeds(const toml::table& table) {
  return ReadList(table, "seeds", ReadSeed);
}

void ReadEvaluations(const toml::table& file, trainer::EvaluationPlan* plan) {
  const toml::table* table = Subtable(file, "evaluations");
  if (table == nullptr) return;
  CheckKeys(*table, "[evaluations]",
            {"inference_tau_factors", "active_histogram", "router_health",
             "tasks", "keep_checkpoint"});
  if (table->get("inference_tau_factors") != nullptr) {
    plan->inference_tau_factors =
        ReadList(*table, "inference_tau_factors", [](const toml::node& node) {
          const std::optional<double> factor = node.value<double>();
          if (!factor) FailAt(node, "a factor must be a number");
          return *factor;
        });
  }
  plan->active_histogram =
      Get<bool>(*table, "active_histogram", plan->active_histogram);
  plan->router_health = Get<bool>(*table, "router_health", plan->router_health);
  if (table->get("tasks") != nullptr) {
    plan->tasks = ReadList(*table, "tasks", [](const toml::node& node) {
      const std::optional<std::string> task = node.value<std::string>();
      if (!task) FailAt(node, "a task must be a name in quotes");
      return *task;
    });
  }
  plan->keep_checkpoint =
      Get<bool>(*table, "keep_checkpoint", plan->keep_checkpoint);
  try {
    trainer::CheckEvaluationPlan(*plan);
  } catch (const ConfigError& error) {
    FailAt(*table, error.what());
  }
}

Waves::Waves(const toml::table& file, const std::vector<int64_t>& seeds,
             const std::vector<RowPart>& rows)
    : num_seeds_(seeds.size()) {
  std::vector<std::string> ids;
  for (const RowPart& row : rows) ids.push_back(row.row.id);
  int64_t wave = 0;
  for (const toml::table* table : TablesOf(file, "waves")) {
    CheckKeys(*table, "[[waves]]", {"rows", "seeds"});
    const Places places = ChooseSeeds(*table, seeds, "experiment");
    const std::vector<std::string> chosen = ReadList(
        *table, "rows",
        [&](const toml::node& node) { return ReadKnown(node, "row", ids); });
    if (!places || chosen.empty()) {
      FailAt(*table, "[[waves]] needs rows = [ID, ...] and seeds = [...]");
    }
    for (const std::string& id : chosen) {
      for (const size_t place : *places) {
        if (wave_.emplace(std::pair(id, place), wave).second) continue;
        FailAt(*table, fmt::format("row '{}' has seed {} in an earlier wave; "
                                   "leave it out here",
                                   id, seeds[place]));
      }
    }
    ++wave;
  }
  for (const RowPart& row : rows) {
    if (!PlacesOf(row.row.id).empty()) continue;
    FailAt(*row.table,
           fmt::format(
               "row '{}' is in no [[waves]], and has no run; add it to one",
               row.row.id));
  }
}

std::set<size_t> Waves::PlacesOf(const std::string& row) const {
  std::set<size_t> places;
  for (const auto& [key, wave] : wave_) {
    if (key.first == row) places.insert(key.second);
  }
  return places;
}

int64_t Waves::Turn(const std::string& row, size_t place) const {
  return wave_.at({row, place}) * static_cast<int64_t>(num_seeds_) +
         static_cast<int64_t>(place);
}

GridParts ReadGridParts(const std::filesystem::path& path,
                        const std::vector<std::string>& overrides) {
  GridParts parts;
  parts.files.push_back(
      std::make_shared<const toml::table>(ParseTomlFile(path)));
  const toml::table& root = *parts.files.front();
  CheckKeys(root, "a grid",
            {"grid", "cluster", "config", "corpora", "rows", "evaluations",
             "experiments"});
  Grid& grid = parts.grid;
  grid.path = path;
  for (const std::string& assignment : overrides) {
    grid.overrides.push_back(TrimmedOverride(assignment));
  }
  ReadHeader(root, grid);
  ReadEvaluations(root, &grid.evaluations);
  for (const std::string& assignment : grid.overrides) {
    if (assignment.starts_with("training.seed=")) {
      throw ConfigError(fmt::format(
          "--set {}: the seeds of a grid are a list; use --seeds", assignment));
    }
  }
  ConfigDraft base;
  if (const toml::table* config = Subtable(root, "config")) {
    base.Apply(*config);
  }
  std::set<std::string> corpus_ids, row_ids;
  for (const toml::table* table : TablesOf(root, "corpora")) {
    parts.corpora.push_back(ReadCorpus(*table, base, grid.seeds, corpus_ids));
    grid.corpora.push_back(parts.corpora.back().corpus);
  }
  for (const toml::table* table : TablesOf(root, "rows")) {
    parts.rows.push_back(ReadRow(*table, grid, row_ids));
    grid.rows.push_back(parts.rows.back().row);
  }
  for (const auto& [key, empty] : {std::pair("corpora", corpus_ids.empty()),
                                   std::pair("rows", row_ids.empty())}) {
    if (empty)
      FailAt(root, fmt::format("a grid needs at least one [[{}]]", key));
  }
  CheckEachHasRuns(parts.corpora, parts.rows, grid.seeds.size());
  CheckVariants(parts.corpora, parts.rows);
  parts.placements = ReadPlacements(root, grid);
  return parts;
}

std::vector<GridRun> MakeRuns(const GridParts& parts,
                              const std::vector<RowPart>& rows) {
  const Grid& grid = parts.grid;
  const std::vector<CorpusPart>& corpora = parts.corpora;
  size_t num_runs = 0;
  for (size_t c = 0; c < corpora.size(); ++c) {
    for (const RowPart& row : rows) {
      num_runs += SeedsOf(corpora[c], c, row, grid.seeds.size()).size();
    }
  }
  if (num_runs > kMaxRuns) {
    throw ConfigError(fmt::format(
        "{}: {} corpora, {} rows and {} seeds are {} runs, more than {}; "
        "split them into several grids",
        grid.path.string(), corpora.size(), rows.size(), grid.seeds.size(),
        num_runs, kMaxRuns));
  }
  std::vector<GridRun> runs;
  for (size_t c = 0; c < corpora.size(); ++c) {
    for (const RowPart& row : rows) {
      ConfigDraft draft = corpora[c].draft;
      for (const toml::table* config : row.configs) draft.Apply(*config);
      if (const auto set = draft.origins.find("training.seed");
          set != draft.origins.end()) {
        throw ConfigError(set->second +
                          ": the seeds of a grid are a list; leave out "
                          "training.seed and use 'seeds' of [grid]");
      }
      for (const std::string& assignment : grid.overrides) {
        draft.ApplyOverride(assignment);
      }
      for (size_t s : SeedsOf(corpora[c], c, row, grid.seeds.size())) {
        const int64_t seed = grid.seeds[s];
        draft.config.training.seed = seed;
        try {
          draft.Resolve();
        } catch (const ConfigError& error) {
          throw ConfigError(fmt::format("{}: row {} on corpus {}: {}",
                                        grid.path.string(), row.row.id,
                                        corpora[c].corpus.id, error.what()));
        }
        GridRun run;
        run.id =
            fmt::format("{}/{}/seed{}", corpora[c].corpus.id, row.row.id, seed);
        run.corpus = corpora[c].corpus;
        run.row = row.row;
        run.seed = seed;
        run.config = draft.config;
        run.runtime = draft.runtime;
        run.evaluations = row.evaluations;
        runs.push_back(std::move(run));
      }
    }
  }
  return runs;
}

}  // namespace softmoe::experiments
