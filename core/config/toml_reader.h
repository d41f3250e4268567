// SPDX-License-Identifier: Apache-2.0
//
// toml_reader.h - tables of a TOML file, read strictly: every key must be
// known, and every message says FILE:LINE:COLUMN.
#ifndef SOFTMOE_CORE_CONFIG_TOML_READER_H_
#define SOFTMOE_CORE_CONFIG_TOML_READER_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/toml.h"

namespace softmoe {

// Reads one table. Call the getters, then Finish, which refuses keys that
// nobody has asked for. All throw DataError.
class TomlReader {
 public:
  // `table` must outlive the reader.
  explicit TomlReader(const toml::table* table) : table_(*table) {}

  bool Has(const std::string& key) { return Find(key) != nullptr; }

  std::string Text(const std::string& key);  // must be there
  std::string TextOr(const std::string& key, const std::string& otherwise);
  int64_t Integer(const std::string& key);  // must be there
  std::optional<int64_t> OptionalInteger(const std::string& key);
  std::optional<double> OptionalNumber(const std::string& key);
  double Number(const std::string& key);                   // must be there
  std::vector<std::string> Texts(const std::string& key);  // or none
  // These two arrays must be there.
  std::vector<int64_t> Integers(const std::string& key);
  std::vector<double> Numbers(const std::string& key);
  // Sub-tables; nullptr or an empty list if absent.
  const toml::table* Table(const std::string& key);
  std::vector<const toml::table*> Tables(const std::string& key);
  // An array of arrays of texts, which must be there.
  std::vector<std::vector<std::string>> TextLists(const std::string& key);

  void Finish() const;
  // Throws DataError "FILE:LINE:COLUMN: PROBLEM" for the whole table or a key.
  [[noreturn]] void Fail(const std::string& problem) const;
  [[noreturn]] void FailAt(const std::string& key,
                           const std::string& problem) const;

 private:
  const toml::node* Find(const std::string& key);
  // Returns the entries of an array; fails at `key` unless it is an array of T.
  template <typename T>
  std::vector<T> Entries(const std::string& key, const toml::node* array,
                         const char* problem) const;

  const toml::table& table_;
  std::set<std::string> asked_;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_TOML_READER_H_
