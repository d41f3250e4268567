// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/fault_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "core/files/paths.h"

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
  fault.id = reader.Text("id");
  fault.suite = reader.Text("suite");
  fault.fault = reader.Text("fault");
  fault.equivalent_because = reader.TextOr("equivalent_because", "");
  fault.counts_with = reader.TextOr("counts_with", "");
  fault.file = reader.Text("file");
  const std::string expression = reader.TextOr("expression", "");
  const std::string statement = reader.TextOr("statement", "");
  fault.syntax = statement.empty() ? Syntax::kExpression : Syntax::kStatement;
  fault.pattern = {reader.TextOr("before", ""),
                   statement.empty() ? expression : statement,
                   reader.TextOr("after", "")};
  fault.instead = reader.Text("instead");
  reader.Finish();
  if (expression.empty() == statement.empty()) {
    reader.Fail("give either `expression` or `statement`");
  }
  if (NamesMember(expression)) {
    reader.FailAt("expression",
                  "a member that is initialised by name is not an expression: "
                  "put its name into `before`");
  }
  if (fault.area() != area || fault.id.size() <= area.size() + 1) {
    reader.FailAt(
        "id", fmt::format("must be '{}.WHAT_IS_WRONG' in {}.toml", area, area));
  }
  return fault;
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

std::vector<PlacedFault> PlaceFaults(const std::vector<Fault>& faults,
                                     const SourceReader& read) {
  std::string problems;
  std::map<std::string, std::string> places;  // of ids
  std::vector<PlacedFault> result;
  for (const Fault& fault : faults) {
    try {
      const auto [place, is_new] = places.try_emplace(fault.id, fault.where);
      if (!is_new) throw DataError("is planted already, in " + place->second);
      const std::string* text = read(fault.file);
      if (text == nullptr) throw DataError("the file is not among the sources");
      result.push_back({fault.id, fault.file, FindOnce(*text, fault.pattern),
                        fault.syntax, "chosen", fault.instead});
    } catch (const DataError& error) {
      problems +=
          fmt::format("{}{}: {} in {}: {}", problems.empty() ? "" : "\n",
                      fault.where, fault.id, fault.file, error.what());
    }
  }
  if (!problems.empty()) throw DataError(problems);
  return result;
}

}  // namespace softmoe::mutation
