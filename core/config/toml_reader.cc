// SPDX-License-Identifier: Apache-2.0
#include "core/config/toml_reader.h"

#include <fmt/core.h>

#include <type_traits>
#include <utility>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe {

const toml::node* TomlReader::Find(const std::string& key) {
  asked_.insert(key);
  return table_.get(key);
}

void TomlReader::Fail(const std::string& problem) const {
  throw DataError(fmt::format("{}: {}", TomlPosition(table_), problem));
}

void TomlReader::FailAt(const std::string& key,
                        const std::string& problem) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) {
    Fail(fmt::format("the key '{}' is missing: {}", key, problem));
  }
  throw DataError(
      fmt::format("{}: '{}' {}", TomlPosition(*node), key, problem));
}

std::string TomlReader::Text(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr || !node->is_string()) FailAt(key, "must be a string");
  return node->as_string()->get();
}

std::string TomlReader::TextOr(const std::string& key,
                               const std::string& otherwise) {
  return Find(key) == nullptr ? otherwise : Text(key);
}

int64_t TomlReader::Integer(const std::string& key) {
  const std::optional<int64_t> value = OptionalInteger(key);
  if (!value) FailAt(key, "must be an integer");
  return *value;
}

std::optional<int64_t> TomlReader::OptionalInteger(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_integer()) FailAt(key, "must be an integer");
  return node->as_integer()->get();
}

std::optional<double> TomlReader::OptionalNumber(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return std::nullopt;
  const std::optional<double> value = node->value<double>();
  if (!value) FailAt(key, "must be a number");
  return value;
}

double TomlReader::Number(const std::string& key) {
  const std::optional<double> value = OptionalNumber(key);
  if (!value) FailAt(key, "must be a number");
  return *value;
}

template <typename T>
std::vector<T> TomlReader::Entries(const std::string& key,
                                   const toml::node* array,
                                   const char* problem) const {
  if (array == nullptr || !array->is_array()) FailAt(key, problem);
  std::vector<T> entries;
  for (const toml::node& entry : *array->as_array()) {
    // An integer up to 2^53 is also accepted as a double.
    std::optional<T> value =
        std::is_same_v<T, double> ? entry.value<T>() : entry.value_exact<T>();
    if (!value) FailAt(key, problem);
    entries.push_back(*std::move(value));
  }
  return entries;
}

std::vector<int64_t> TomlReader::Integers(const std::string& key) {
  return Entries<int64_t>(key, Find(key), "must be an array of integers");
}

std::vector<double> TomlReader::Numbers(const std::string& key) {
  return Entries<double>(key, Find(key), "must be an array of numbers");
}

std::vector<std::string> TomlReader::Texts(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return {};
  return Entries<std::string>(key, node, "must be an array of strings");
}

const toml::table* TomlReader::Table(const std::string& key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) FailAt(key, "must be a table");
  return node->as_table();
}

std::vector<const toml::table*> TomlReader::Tables(const std::string& key) {
  const toml::node* node = Find(key);
  std::vector<const toml::table*> tables;
  if (node == nullptr) return tables;
  if (!node->is_array()) FailAt(key, "must be an array of tables");
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_table()) FailAt(key, "must be an array of tables");
    tables.push_back(entry.as_table());
  }
  return tables;
}

std::vector<std::vector<std::string>> TomlReader::TextLists(
    const std::string& key) {
  constexpr const char* kProblem = "must be an array of arrays of strings";
  const toml::node* node = Find(key);
  if (node == nullptr || !node->is_array()) FailAt(key, kProblem);
  std::vector<std::vector<std::string>> lists;
  for (const toml::node& entry : *node->as_array()) {
    lists.push_back(Entries<std::string>(key, &entry, kProblem));
  }
  return lists;
}

void TomlReader::Finish() const {
  for (const auto& [key, node] : table_) {
    const std::string name(key);
    if (!asked_.contains(name)) {
      throw DataError(
          fmt::format("{}: unknown key '{}'; {}", TomlPosition(node), name,
                      Suggestion(name, {asked_.begin(), asked_.end()})));
    }
  }
}

}  // namespace softmoe
