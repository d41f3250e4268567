// SPDX-License-Identifier: Apache-2.0
//
// grid_toml.h - reads the tables of grid and experiment files. Every message
// says FILE:LINE:COLUMN.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_GRID_TOML_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_GRID_TOML_H_

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "core/config/toml.h"

namespace softmoe::experiments {

// Throws ConfigError with the place of `node`.
[[noreturn]] void FailAt(const toml::node& node, const std::string& message);

// Refuses keys of `table` that are not in `known`.
void CheckKeys(const toml::table& table, const std::string& where,
               const std::vector<std::string>& known);

// The value at `key`, or `fallback` if there is none. Throws ConfigError if it
// has another type, and for a text with a NUL, which no report can hold.
template <typename T>
T Get(const toml::table& table, const std::string& key, const T& fallback) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return fallback;
  const std::optional<T> value = node->value_exact<T>();
  if (!value) FailAt(*node, fmt::format("'{}' has the wrong type", key));
  if constexpr (std::is_same_v<T, std::string>) {
    if (value->find('\0') != std::string::npos) {
      FailAt(*node, fmt::format("'{}' has a NUL; leave it out", key));
    }
  }
  return *value;
}

// The text at `key`, which must exist and not be empty.
std::string Required(const toml::table& table, const std::string& key,
                     const std::string& where);

// The text at `key`, or "", which becomes part of names of files or rows: at
// most 100 letters, digits, '-', '_', '.' and characters of `more`, not
// beginning with a period.
std::string GetName(const toml::table& table, const std::string& key,
                    const std::string& more = "");

// Like GetName, but the text must exist and not be empty.
std::string RequiredName(const toml::table& table, const std::string& key,
                         const std::string& where);

// The RequiredName 'id' of `table`. Adds it to `seen`, where it must not be
// yet.
std::string RequiredId(const toml::table& table, const std::string& where,
                       std::set<std::string>& seen);

// The number from `least` to `most` at `key`, or `fallback`.
double NumberWithin(const toml::table& table, const std::string& key,
                    double least, double most, double fallback);

// The table at `key`; nullptr if there is none.
const toml::table* Subtable(const toml::table& table, const std::string& key);

// The tables of the array [[key]]; empty if there is no such array.
std::vector<const toml::table*> TablesOf(const toml::table& table,
                                         const std::string& key);

template <typename T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The values at `key`: a non-empty list without duplicates, in which `read`
// turns nodes into values. Empty if there is no such key.
template <typename Read>
auto ReadList(const toml::table& table, const std::string& key, Read read) {
  std::vector<decltype(read(table))> values;
  const toml::node* node = table.get(key);
  if (node == nullptr) return values;
  if (!node->is_array() || node->as_array()->empty()) {
    FailAt(*node, fmt::format("'{}' must be a list that is not empty", key));
  }
  for (const toml::node& item : *node->as_array()) {
    const auto value = read(item);
    if (Contains(values, value)) {
      FailAt(item, fmt::format("'{}' lists {} twice", key, value));
    }
    values.push_back(value);
  }
  return values;
}

// A text that must be one of `known`; for the message, `kind` says what these
// are ("corpus") and `owner` whose they are.
std::string ReadKnown(const toml::node& node, const std::string& kind,
                      const std::vector<std::string>& known,
                      const std::string& owner = "the grid");

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_GRID_TOML_H_
