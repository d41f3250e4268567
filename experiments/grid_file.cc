// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/config_toml.h"
#include "core/errors.h"
#include "core/suggestion.h"
#include "core/toml.h"

namespace softmoe::experiments {
namespace {

// Each is held in memory, and is a training run.
constexpr size_t kMaxRuns = 10'000;

[[noreturn]] void Fail(const toml::node& node, const std::string& message) {
  throw ConfigError(TomlPosition(node) + ": " + message);
}

// Refuses keys of `table` that are not in `known`.
void CheckKeys(const toml::table& table, const std::string& where,
               const std::vector<std::string>& known) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    bool found = false;
    for (const std::string& candidate : known) found |= candidate == name;
    if (!found) {
      Fail(value, fmt::format("unknown key '{}' in {}; {}", name, where,
                              Suggestion(name, known)));
    }
  }
}

template <typename T>
T Get(const toml::table& table, const std::string& key, const T& fallback) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  const std::optional<T> value = node->value_exact<T>();
  if (!value) Fail(*node, fmt::format("'{}' has the wrong type", key));
  return *value;
}

std::string Required(const toml::table& table, const std::string& key,
                     const std::string& where) {
  if (table.get(key) == nullptr) {
    Fail(table, fmt::format("{} needs '{}'", where, key));
  }
  const std::string value = Get<std::string>(table, key, "");
  if (value.empty()) Fail(*table.get(key), fmt::format("'{}' is empty", key));
  return value;
}

// An id becomes part of folder names.
std::string RequiredId(const toml::table& table, const std::string& where,
                       std::set<std::string>& seen) {
  const std::string id = Required(table, "id", where);
  if (id.starts_with('.')) {
    Fail(*table.get("id"), fmt::format("id '{}' begins with a point", id));
  }
  for (char c : id) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' &&
        c != '_') {
      Fail(*table.get("id"),
           fmt::format("id '{}': only letters, digits, '-', '_' and '.'", id));
    }
  }
  if (!seen.insert(id).second) {
    Fail(*table.get("id"), fmt::format("id '{}' is used twice", id));
  }
  return id;
}

double Number(const toml::table& table, const std::string& key,
              double fallback) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  const std::optional<double> value = node->value<double>();
  if (!value || !(*value > 0)) {
    Fail(*node, fmt::format("'{}' must be a number above 0", key));
  }
  return *value;
}

const toml::table* Subtable(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) Fail(*node, fmt::format("'{}' must be a table", key));
  return node->as_table();
}

// The tables of the array `key`, which must have at least one.
std::vector<const toml::table*> TablesOf(const toml::table& table,
                                         const std::string& key) {
  const toml::array* array = table[key].as_array();
  std::vector<const toml::table*> tables;
  if (array != nullptr) {
    for (const toml::node& node : *array) {
      if (!node.is_table()) Fail(node, fmt::format("expected [[{}]]", key));
      tables.push_back(node.as_table());
    }
  }
  if (tables.empty()) {
    Fail(table, fmt::format("a grid needs at least one [[{}]]", key));
  }
  return tables;
}

template <typename T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The values at `key`: a list, not empty, of values that `read` takes from
// their nodes, none twice. Nothing if there is no such key.
template <typename Read>
auto ReadList(const toml::table& table, const std::string& key, Read read) {
  std::vector<decltype(read(table))> values;
  const toml::node* node = table.get(key);
  if (node == nullptr) return values;
  if (!node->is_array() || node->as_array()->empty()) {
    Fail(*node, fmt::format("'{}' must be a list that is not empty", key));
  }
  for (const toml::node& item : *node->as_array()) {
    const auto value = read(item);
    if (Contains(values, value)) {
      Fail(item, fmt::format("'{}' lists {} twice", key, value));
    }
    values.push_back(value);
  }
  return values;
}

int64_t ReadSeed(const toml::node& node) {
  const std::optional<int64_t> seed = node.value_exact<int64_t>();
  if (!seed || *seed < 0) Fail(node, "a seed must be an integer >= 0");
  return *seed;
}

// Places in a list of the grid; empty: every place, also one that --seeds adds.
using Places = std::set<size_t>;

bool Takes(const Places& places, size_t place) {
  return places.empty() || places.contains(place);
}

template <typename T>
size_t PlaceOf(const std::vector<T>& list, const T& value) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), value) -
                             list.begin());
}

// Which of the grid's seeds a corpus or a row chose.
Places ChooseSeeds(const toml::table& table, const std::vector<int64_t>& all) {
  Places places;
  ReadList(table, "seeds", [&](const toml::node& node) {
    const int64_t seed = ReadSeed(node);
    if (!Contains(all, seed)) {
      Fail(node, fmt::format("the grid has no seed {}; add it to the seeds of "
                             "[grid], which are {}, or leave it out here",
                             seed, fmt::join(all, ", ")));
    }
    places.insert(PlaceOf(all, seed));
    return seed;
  });
  return places;
}

// Which of the grid's corpora a row chose.
Places ChooseCorpora(const toml::table& row,
                     const std::vector<GridCorpus>& corpora) {
  std::vector<std::string> ids;
  for (const GridCorpus& corpus : corpora) ids.push_back(corpus.id);
  Places places;
  ReadList(row, "corpora", [&](const toml::node& node) {
    const std::string id = node.value_exact<std::string>().value_or("");
    if (!Contains(ids, id)) {
      Fail(node, fmt::format("the grid has no corpus '{}'; {}", id,
                             Suggestion(id, ids)));
    }
    places.insert(PlaceOf(ids, id));
    return id;
  });
  return places;
}

void ReadCluster(const toml::table& table, Cluster& cluster) {
  cluster.peak_flops = Number(table, "peak_flops", cluster.peak_flops);
  cluster.assumed_mfu = Number(table, "assumed_mfu", cluster.assumed_mfu);
  cluster.sharded_optimizer =
      Get<bool>(table, "sharded_optimizer", cluster.sharded_optimizer);
  cluster.gpu_bytes = Number(table, "gpu_bytes", cluster.gpu_bytes);
  cluster.core_flops = Number(table, "core_flops", cluster.core_flops);
  cluster.gpus_per_node =
      Get<int64_t>(table, "gpus_per_node", cluster.gpus_per_node);
  if (cluster.gpus_per_node < 1) {
    Fail(*table.get("gpus_per_node"), "'gpus_per_node' must be at least 1");
  }
  const toml::node* sbatch = table.get("sbatch");
  if (sbatch == nullptr) return;
  if (!sbatch->is_array()) Fail(*sbatch, "'sbatch' must be a list of options");
  for (const toml::node& node : *sbatch->as_array()) {
    const std::string option = node.value_exact<std::string>().value_or("");
    if (!option.starts_with("--") || option.find('\n') != option.npos) {
      Fail(node, "expected an option of sbatch, such as \"--partition=gpu\"");
    }
    cluster.sbatch.push_back(option);
  }
}

void ReadHeader(const toml::table& root, Grid& grid) {
  const toml::table* header = Subtable(root, "grid");
  if (header == nullptr) Fail(root, "a grid needs a [grid] table");
  CheckKeys(*header, "[grid]", {"name", "scale", "title", "seeds"});
  std::set<std::string> none;
  grid.name = Required(*header, "name", "[grid]");
  grid.scale = Required(*header, "scale", "[grid]");
  grid.title = Get<std::string>(*header, "title", "");
  if (!Contains(Scales(), grid.scale)) {
    Fail(*header->get("scale"),
         fmt::format("scale '{}': expected one of {}", grid.scale,
                     fmt::join(Scales(), ", ")));
  }
  grid.seeds = ReadList(*header, "seeds", ReadSeed);
  if (grid.seeds.empty()) Fail(*header, "[grid] needs seeds = [SEED, ...]");
  if (const toml::table* cluster = Subtable(root, "cluster")) {
    CheckKeys(*cluster, "[cluster]",
              {"peak_flops", "assumed_mfu", "sharded_optimizer", "gpu_bytes",
               "gpus_per_node", "sbatch", "core_flops"});
    ReadCluster(*cluster, grid.cluster);
  }
}

// A corpus of the file, and what its runs have.
struct CorpusPart {
  const toml::table* table;
  GridCorpus corpus;
  Places seeds;
  ConfigDraft draft;
};

// A row of the file, and which runs it has.
struct RowPart {
  const toml::table* table;
  GridRow row;
  Places seeds, corpora;
};

CorpusPart ReadCorpus(const toml::table& table, const ConfigDraft& base,
                      const std::vector<int64_t>& seeds,
                      std::set<std::string>& taken_ids) {
  CheckKeys(table, "[[corpora]]",
            {"id", "title", "paper_dataset", "stands_for", "gpus", "seeds",
             "config"});
  GridCorpus corpus;
  corpus.id = RequiredId(table, "[[corpora]]", taken_ids);
  corpus.title = Required(table, "title", "[[corpora]]");
  corpus.paper_dataset = Get<std::string>(table, "paper_dataset", "");
  corpus.stands_for = Get<std::string>(table, "stands_for", "");
  if (!corpus.stands_for.empty() && !corpus.paper_dataset.empty()) {
    Fail(*table.get("stands_for"),
         "a corpus of the paper stands for nothing but itself; leave out "
         "'stands_for' or 'paper_dataset'");
  }
  corpus.gpus = Get<int64_t>(table, "gpus", 0);
  if (corpus.gpus < 0) Fail(*table.get("gpus"), "'gpus' is negative");
  ConfigDraft draft = base;
  if (const toml::table* config = Subtable(table, "config")) {
    draft.Apply(*config);
  }
  return {&table, corpus, ChooseSeeds(table, seeds), draft};
}

// `grid` has its corpora and the seeds of the file.
RowPart ReadRow(const toml::table& table, const Grid& grid,
                std::set<std::string>& taken_ids) {
  CheckKeys(
      table, "[[rows]]",
      {"id", "label", "paper_row", "variant", "corpora", "seeds", "config"});
  GridRow row;
  row.id = RequiredId(table, "[[rows]]", taken_ids);
  row.label = Required(table, "label", "[[rows]]");
  row.paper_row = Get<std::string>(table, "paper_row", "");
  row.variant = Get<std::string>(table, "variant", "");
  return {&table, row, ChooseSeeds(table, grid.seeds),
          ChooseCorpora(table, grid.corpora)};
}

// The places in the list of seeds that a row has on a corpus, which is in place
// `c` of the corpora.
std::vector<size_t> SeedsOf(const CorpusPart& corpus, size_t c,
                            const RowPart& row, size_t num_seeds) {
  std::vector<size_t> places;
  if (!Takes(row.corpora, c)) return places;
  for (size_t s = 0; s < num_seeds; ++s) {
    if (Takes(corpus.seeds, s) && Takes(row.seeds, s)) places.push_back(s);
  }
  return places;
}

// Choices that leave nothing are a mistake in the file.
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
    Fail(*rows[r].table,
         fmt::format("row '{}' has no run: it has no seed in common with its "
                     "corpora; change 'seeds' or 'corpora' here, or 'seeds' "
                     "there",
                     rows[r].row.id));
  }
  for (size_t c = 0; c < corpora.size(); ++c) {
    if (corpus_runs[c]) continue;
    Fail(*corpora[c].table,
         fmt::format("corpus '{}' has no run: every row chose others; leave it "
                     "out, or name it in the 'corpora' of a row",
                     corpora[c].corpus.id));
  }
}

void AddRuns(const std::vector<CorpusPart>& corpora,
             const std::vector<RowPart>& rows, Grid& grid) {
  size_t num_runs = 0;
  for (size_t c = 0; c < corpora.size(); ++c) {
    for (const RowPart& row : rows) {
      num_runs += SeedsOf(corpora[c], c, row, grid.seeds.size()).size();
    }
  }
  if (num_runs > kMaxRuns) {
    throw ConfigError(fmt::format(
        "{}: {} corpora, {} rows and {} seeds are {} runs, more than {}; make "
        "several grids of them",
        grid.path.string(), corpora.size(), rows.size(), grid.seeds.size(),
        num_runs, kMaxRuns));
  }
  if (num_runs == 0) {
    throw ConfigError(fmt::format(
        "--seeds: every row of {} chose later ones of its seeds, and has none "
        "of these {}; list more",
        grid.path.string(), grid.seeds.size()));
  }
  for (size_t c = 0; c < corpora.size(); ++c) {
    for (const RowPart& row : rows) {
      ConfigDraft draft = corpora[c].draft;
      if (const toml::table* config = Subtable(*row.table, "config")) {
        draft.Apply(*config);
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
        grid.runs.push_back(std::move(run));
      }
    }
  }
}

}  // namespace

const std::vector<std::string>& Scales() {
  static const std::vector<std::string> scales = {"smoke", "mini", "midi",
                                                  "paper"};
  return scales;
}

std::string GridRun::paper_id() const {
  const std::string& dataset =
      corpus.paper_dataset.empty() ? corpus.stands_for : corpus.paper_dataset;
  if (dataset.empty() || row.paper_row.empty()) return "";
  return dataset + "/" + row.paper_row;
}

Grid LoadGrid(const std::filesystem::path& path,
              const std::vector<std::string>& overrides,
              const std::vector<int64_t>& seeds) {
  const toml::table root = ParseTomlFile(path);
  CheckKeys(root, "a grid", {"grid", "cluster", "config", "corpora", "rows"});
  Grid grid;
  grid.path = path;
  grid.overrides = overrides;
  ReadHeader(root, grid);
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with("training.seed=")) {
      throw ConfigError(fmt::format(
          "--set {}: the seeds of a grid are a list; use --seeds", assignment));
    }
  }

  ConfigDraft base;
  if (const toml::table* config = Subtable(root, "config")) {
    base.Apply(*config);
  }
  std::vector<CorpusPart> corpora;
  std::set<std::string> corpus_ids;
  for (const toml::table* table : TablesOf(root, "corpora")) {
    corpora.push_back(ReadCorpus(*table, base, grid.seeds, corpus_ids));
    grid.corpora.push_back(corpora.back().corpus);
  }
  std::vector<RowPart> rows;
  std::set<std::string> row_ids;
  for (const toml::table* table : TablesOf(root, "rows")) {
    rows.push_back(ReadRow(*table, grid, row_ids));
    grid.rows.push_back(rows.back().row);
  }
  CheckEachHasRuns(corpora, rows, grid.seeds.size());
  if (!seeds.empty()) grid.seeds = seeds;
  AddRuns(corpora, rows, grid);
  return grid;
}

}  // namespace softmoe::experiments
