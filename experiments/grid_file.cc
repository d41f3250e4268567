// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_file.h"

#include <fmt/format.h>

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
  if (grid.scale != "smoke" && grid.scale != "mini" && grid.scale != "paper") {
    Fail(*header->get("scale"),
         fmt::format("scale '{}': expected smoke, mini or paper", grid.scale));
  }
  const toml::array* seeds = (*header)["seeds"].as_array();
  if (seeds == nullptr || seeds->empty()) {
    Fail(*header, "[grid] needs seeds = [SEED, ...]");
  }
  for (const toml::node& node : *seeds) {
    const std::optional<int64_t> seed = node.value_exact<int64_t>();
    if (!seed || *seed < 0) Fail(node, "a seed must be an integer >= 0");
    for (int64_t earlier : grid.seeds) {
      if (earlier == *seed) Fail(node, "this seed is listed twice");
    }
    grid.seeds.push_back(*seed);
  }
  if (const toml::table* cluster = Subtable(root, "cluster")) {
    CheckKeys(*cluster, "[cluster]",
              {"peak_flops", "assumed_mfu", "sharded_optimizer", "gpu_bytes",
               "gpus_per_node", "sbatch", "core_flops"});
    ReadCluster(*cluster, grid.cluster);
  }
}

}  // namespace

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
  if (!seeds.empty()) grid.seeds = seeds;
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
  std::set<std::string> corpus_ids;
  std::vector<ConfigDraft> corpus_drafts;
  for (const toml::table* table : TablesOf(root, "corpora")) {
    CheckKeys(*table, "[[corpora]]",
              {"id", "title", "paper_dataset", "stands_for", "gpus", "config"});
    GridCorpus corpus;
    corpus.id = RequiredId(*table, "[[corpora]]", corpus_ids);
    corpus.title = Required(*table, "title", "[[corpora]]");
    corpus.paper_dataset = Get<std::string>(*table, "paper_dataset", "");
    corpus.stands_for = Get<std::string>(*table, "stands_for", "");
    if (!corpus.stands_for.empty() && !corpus.paper_dataset.empty()) {
      Fail(*table->get("stands_for"),
           "a corpus of the paper stands for nothing but itself; leave out "
           "'stands_for' or 'paper_dataset'");
    }
    corpus.gpus = Get<int64_t>(*table, "gpus", 0);
    if (corpus.gpus < 0) Fail(*table->get("gpus"), "'gpus' is negative");
    ConfigDraft draft = base;
    if (const toml::table* config = Subtable(*table, "config")) {
      draft.Apply(*config);
    }
    grid.corpora.push_back(corpus);
    corpus_drafts.push_back(std::move(draft));
  }

  std::set<std::string> row_ids;
  const std::vector<const toml::table*> rows = TablesOf(root, "rows");
  for (const toml::table* table : rows) {
    CheckKeys(*table, "[[rows]]",
              {"id", "label", "paper_row", "variant", "config"});
    GridRow row;
    row.id = RequiredId(*table, "[[rows]]", row_ids);
    row.label = Required(*table, "label", "[[rows]]");
    row.paper_row = Get<std::string>(*table, "paper_row", "");
    row.variant = Get<std::string>(*table, "variant", "");
    grid.rows.push_back(row);
  }

  const size_t num_runs =
      grid.corpora.size() * grid.rows.size() * grid.seeds.size();
  if (num_runs > kMaxRuns) {
    throw ConfigError(fmt::format(
        "{}: {} corpora, {} rows and {} seeds are {} runs, more than {}; make "
        "several grids of them",
        path.string(), grid.corpora.size(), grid.rows.size(), grid.seeds.size(),
        num_runs, kMaxRuns));
  }
  for (size_t c = 0; c < grid.corpora.size(); ++c) {
    for (size_t r = 0; r < grid.rows.size(); ++r) {
      ConfigDraft draft = corpus_drafts[c];
      if (const toml::table* config = Subtable(*rows[r], "config")) {
        draft.Apply(*config);
      }
      for (const std::string& assignment : overrides) {
        draft.ApplyOverride(assignment);
      }
      for (int64_t seed : grid.seeds) {
        draft.config.training.seed = seed;
        try {
          draft.Resolve();
        } catch (const ConfigError& error) {
          throw ConfigError(fmt::format("{}: row {} on corpus {}: {}",
                                        path.string(), grid.rows[r].id,
                                        grid.corpora[c].id, error.what()));
        }
        GridRun run;
        run.id = fmt::format("{}/{}/seed{}", grid.corpora[c].id,
                             grid.rows[r].id, seed);
        run.corpus = grid.corpora[c];
        run.row = grid.rows[r];
        run.seed = seed;
        run.config = draft.config;
        run.runtime = draft.runtime;
        grid.runs.push_back(std::move(run));
      }
    }
  }
  return grid;
}

}  // namespace softmoe::experiments
