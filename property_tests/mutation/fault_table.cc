// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/fault_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "core/files/runfiles.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

// Whether the text begins like `.member = value`, which no switch can choose.
bool NamesMember(const std::string& expression) {
  return expression.size() > 1 && expression[0] == '.' &&
         (std::isalpha(static_cast<unsigned char>(expression[1])) != 0 ||
          expression[1] == '_');
}

Fault ReadFault(const toml::table* table, const std::string& area) {
  TomlReader reader(table);
  Fault fault;
  fault.where = TomlPosition(*table);
  fault.mutant = {.id = reader.Text("id"),
                  .suite = reader.Text("suite"),
                  .fault = reader.Text("fault"),
                  .equivalent_because = reader.TextOr("equivalent_because", ""),
                  .counts_with = reader.TextOr("counts_with", "")};
  fault.file = reader.Text("file");
  const std::string expression = reader.TextOr("expression", "");
  const std::string statement = reader.TextOr("statement", "");
  fault.syntax = statement.empty() ? Syntax::kExpression : Syntax::kStatement;
  fault.pattern = {reader.TextOr("before", ""),
                   statement.empty() ? expression : statement,
                   reader.TextOr("after", "")};
  fault.offset = reader.OptionalInteger("offset");
  fault.instead = reader.Text("instead");
  reader.Finish();
  if (expression.empty() == statement.empty()) {
    reader.Fail("give either `expression` or `statement`");
  }
  if (NamesMember(expression)) {
    reader.FailAt("expression",
                  "a member that is initialised by name is no expression: "
                  "its name belongs to `before`");
  }
  if (fault.mutant.area() != area ||
      fault.mutant.id.size() <= area.size() + 1) {
    reader.FailAt(
        "id", fmt::format("must be '{}.WHAT_IS_WRONG' in {}.toml", area, area));
  }
  return fault;
}

Edit EditOf(const Fault& fault, const std::string& text) {
  Edit edit = {fault.mutant.id, {}, fault.syntax, fault.instead};
  if (!fault.offset) {
    edit.span = FindOnce(text, fault.pattern);
    return edit;
  }
  const std::string& original = fault.pattern.original;
  const auto begin = static_cast<size_t>(*fault.offset);
  if (*fault.offset < 0 || begin > text.size() ||
      text.compare(begin, original.size(), original) != 0) {
    throw DataError(
        fmt::format("'{}' is not at offset {}", original, *fault.offset));
  }
  edit.span = {begin, begin + original.size()};
  return edit;
}

}  // namespace

std::vector<Fault> ReadFaults(const fs::path& table) {
  const toml::table parsed = ParseTomlFile(table);
  TomlReader reader(&parsed);
  std::vector<Fault> faults;
  for (const toml::table* fault : reader.Tables("fault")) {
    faults.push_back(ReadFault(fault, table.stem().string()));
  }
  reader.Finish();
  if (faults.empty()) reader.Fail("it holds no [[fault]]");
  return faults;
}

const std::vector<Fault>& AllFaults() {
  static const std::vector<Fault> faults = [] {
    // (A folder is not a runfile.)
    const fs::path folder =
        RunfilePath("property_tests/mutation/faults/canary.toml").parent_path();
    std::vector<fs::path> tables;
    for (const fs::path& table : fs::directory_iterator(folder)) {
      if (table.extension() == ".toml") tables.push_back(table);
    }
    std::ranges::sort(tables);
    std::vector<Fault> result;
    for (const fs::path& table : tables) {
      for (Fault& fault : ReadFaults(table)) result.push_back(std::move(fault));
    }
    return result;
  }();
  return faults;
}

std::map<std::string, std::string> PlantFaults(const std::vector<Fault>& faults,
                                               const SourceReader& read) {
  std::string problems;
  const auto complain = [&](const std::string& where,
                            const std::string& problem) {
    problems +=
        fmt::format("{}{}: {}", problems.empty() ? "" : "\n", where, problem);
  };
  std::map<std::string, std::optional<std::string>> texts;
  std::map<std::string, std::vector<Edit>> edits;
  std::map<std::string, std::string> places;  // of ids
  for (const Fault& fault : faults) {
    const auto [place, is_new] =
        places.try_emplace(fault.mutant.id, fault.where);
    if (!is_new) {
      complain(fault.where, fmt::format("{} is planted already, in {}",
                                        fault.mutant.id, place->second));
    }
    const auto [text, is_first] = texts.try_emplace(fault.file);
    if (is_first) text->second = read(fault.file);
    if (!text->second) {
      complain(fault.where,
               fmt::format("{}: {} is not among the sources of the programs",
                           fault.mutant.id, fault.file));
      continue;
    }
    try {
      edits[fault.file].push_back(EditOf(fault, *text->second));
    } catch (const DataError& error) {
      complain(fault.where, fmt::format("{} in {}: {}", fault.mutant.id,
                                        fault.file, error.what()));
    }
  }
  std::map<std::string, std::string> result;
  for (auto& [file, of_file] : edits) {
    try {
      result[file] = Rewrite(*texts[file], std::move(of_file));
    } catch (const DataError& error) {
      complain(file, error.what());
    }
  }
  if (!problems.empty()) throw DataError(problems);
  return result;
}

}  // namespace softmoe::mutation
