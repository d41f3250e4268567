// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/grid_toml.h"

#include <cctype>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe::experiments {

void FailAt(const toml::node& node, const std::string& message) {
  throw ConfigError(TomlPosition(node) + ": " + message);
}

void CheckKeys(const toml::table& table, const std::string& where,
               const std::vector<std::string>& known) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (Contains(known, name)) continue;
    FailAt(value, fmt::format("unknown key '{}' in {}; {}", name, where,
                              Suggestion(name, known)));
  }
}

std::string Required(const toml::table& table, const std::string& key,
                     const std::string& where) {
  if (table.get(key) == nullptr) {
    FailAt(table, fmt::format("{} needs '{}'", where, key));
  }
  const std::string value = Get<std::string>(table, key, "");
  if (value.empty()) FailAt(*table.get(key), fmt::format("'{}' is empty", key));
  return value;
}

std::string GetName(const toml::table& table, const std::string& key,
                    const std::string& more) {
  // Two names, a seed and a hash make the name of a folder.
  constexpr size_t kMostCharacters = 100;
  const std::string name = Get<std::string>(table, key, "");
  const auto refuse = [&](const std::string& problem) {
    FailAt(*table.get(key), fmt::format("{} '{}'{}", key, name, problem));
  };
  if (name.starts_with('.')) refuse(" begins with a point");
  if (name.size() > kMostCharacters) {
    refuse(fmt::format(" has {} characters; at most {}", name.size(),
                       kMostCharacters));
  }
  const std::string signs = "-_." + more;
  for (char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        signs.find(c) == std::string::npos) {
      std::vector<std::string> known;
      for (char sign : signs) known.emplace_back(1, sign);
      refuse(": only letters, digits, " + Listed(known, "and"));
    }
  }
  return name;
}

std::string RequiredName(const toml::table& table, const std::string& key,
                         const std::string& where) {
  Required(table, key, where);
  return GetName(table, key);
}

std::string RequiredId(const toml::table& table, const std::string& where,
                       std::set<std::string>& seen) {
  const std::string id = RequiredName(table, "id", where);
  if (!seen.insert(id).second) {
    FailAt(*table.get("id"), fmt::format("id '{}' is used twice", id));
  }
  return id;
}

double NumberWithin(const toml::table& table, const std::string& key,
                    double least, double most, double fallback) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  const std::optional<double> value = node->value<double>();
  if (!value || !(*value >= least && *value <= most)) {
    FailAt(*node, fmt::format("'{}' must be a number from {:g} to {:g}", key,
                              least, most));
  }
  return *value;
}

const toml::table* Subtable(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) {
    FailAt(*node, fmt::format("'{}' must be a table", key));
  }
  return node->as_table();
}

std::vector<const toml::table*> TablesOf(const toml::table& table,
                                         const std::string& key) {
  const toml::array* array = table[key].as_array();
  std::vector<const toml::table*> tables;
  if (array == nullptr) return tables;
  for (const toml::node& node : *array) {
    if (!node.is_table()) FailAt(node, fmt::format("expected [[{}]]", key));
    tables.push_back(node.as_table());
  }
  return tables;
}

std::string ReadKnown(const toml::node& node, const std::string& kind,
                      const std::vector<std::string>& known,
                      const std::string& owner) {
  const std::optional<std::string> value = node.value_exact<std::string>();
  if (!value) FailAt(node, fmt::format("a {} must be a name in quotes", kind));
  if (!Contains(known, *value)) {
    FailAt(node, fmt::format("{} has no {} '{}'; {}", owner, kind, *value,
                             Suggestion(*value, known)));
  }
  return *value;
}

}  // namespace softmoe::experiments
