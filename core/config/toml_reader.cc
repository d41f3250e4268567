// SPDX-License-Identifier: Apache-2.0
#include "core/config/toml_reader.h"

#include <fmt/core.h>

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
  if (node == nullptr || !node->is_string()) FailAt(key, "must be a text");
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
  if (!node->is_number()) FailAt(key, "must be a number");
  return *node->value<double>();
}

double TomlReader::Number(const std::string& key) {
  const std::optional<double> value = OptionalNumber(key);
  if (!value) FailAt(key, "must be a number");
  return *value;
}

std::vector<int64_t> TomlReader::Integers(const std::string& key) {
  const toml::node* node = Find(key);
  constexpr const char* kProblem = "must be an array of integers";
  if (node == nullptr || !node->is_array()) FailAt(key, kProblem);
  std::vector<int64_t> values;
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_integer()) FailAt(key, kProblem);
    values.push_back(entry.as_integer()->get());
  }
  return values;
}

std::vector<double> TomlReader::Numbers(const std::string& key) {
  const toml::node* node = Find(key);
  constexpr const char* kProblem = "must be an array of numbers";
  if (node == nullptr || !node->is_array()) FailAt(key, kProblem);
  std::vector<double> values;
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_number()) FailAt(key, kProblem);
    values.push_back(*entry.value<double>());
  }
  return values;
}

std::vector<std::string> TomlReader::Texts(const std::string& key) {
  const toml::node* node = Find(key);
  std::vector<std::string> texts;
  if (node == nullptr) return texts;
  if (!node->is_array()) FailAt(key, "must be an array of texts");
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_string()) FailAt(key, "must be an array of texts");
    texts.push_back(entry.as_string()->get());
  }
  return texts;
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
  const toml::node* node = Find(key);
  if (node == nullptr || !node->is_array()) {
    FailAt(key, "must be an array of arrays of texts");
  }
  std::vector<std::vector<std::string>> lists;
  for (const toml::node& entry : *node->as_array()) {
    if (!entry.is_array()) FailAt(key, "must be an array of arrays of texts");
    lists.emplace_back();
    for (const toml::node& text : *entry.as_array()) {
      if (!text.is_string()) FailAt(key, "must be an array of arrays of texts");
      lists.back().push_back(text.as_string()->get());
    }
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
