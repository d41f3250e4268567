// SPDX-License-Identifier: Apache-2.0
#include "golden/csv_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/atomic_file.h"
#include "core/errors.h"
#include "core/suggestion.h"

namespace softmoe::golden {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

const std::string& CsvFile::Get(size_t row, const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw DataError(fmt::format("{}:1: no column '{}'; {}", path.string(), name,
                                Suggestion(name, names)));
  }
  return rows.at(row)[static_cast<size_t>(found - names.begin())];
}

CsvFile ReadCsv(const std::filesystem::path& path) {
  CsvFile file;
  file.path = path;
  std::vector<std::string> lines = Split(ReadWholeFile(path), '\n');
  if (lines.back().empty()) lines.pop_back();  // the end of the last line
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_of("\"\r") != std::string::npos) {
      throw DataError(
          fmt::format("{}:{}: quotes and carriage returns are not "
                      "read here; write plain fields",
                      path.string(), i + 1));
    }
    std::vector<std::string> fields = Split(lines[i], ',');
    if (i == 0) {
      file.names = std::move(fields);
      continue;
    }
    if (fields.size() != file.names.size()) {
      throw DataError(
          fmt::format("{}:{}: {} fields, but the first line names "
                      "{}; complete the line",
                      path.string(), i + 1, fields.size(), file.names.size()));
    }
    file.rows.push_back(std::move(fields));
  }
  if (file.rows.empty()) {
    throw DataError(
        fmt::format("{}:1: no rows; write a line of names and one "
                    "line for each row",
                    path.string()));
  }
  return file;
}

}  // namespace softmoe::golden
