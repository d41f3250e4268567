// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/printed_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe::golden {

const std::string& PrintedTable::Get(size_t row,
                                     const std::string& column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    throw DataError(fmt::format("{}: no column '{}'; {}", place, column,
                                Suggestion(column, columns)));
  }
  return rows.at(row)[static_cast<size_t>(found - columns.begin())];
}

PrintedTable ReadPrintedTable(const std::filesystem::path& path) {
  const toml::table source = ParseTomlFile(path);
  TomlReader reader(&source);
  PrintedTable table;
  table.columns = reader.Texts("columns");
  table.rows = reader.TextLists("rows");
  if (table.rows.empty()) {
    reader.FailAt("rows", "is empty; write an array of cells for each row");
  }
  reader.Finish();
  table.place = TomlPosition(*source.get("rows"));
  for (const std::string& name : table.columns) {
    if (std::count(table.columns.begin(), table.columns.end(), name) > 1) {
      reader.FailAt("columns", fmt::format("names '{}' twice", name));
    }
  }
  for (const toml::node& row : *source.get_as<toml::array>("rows")) {
    table.row_places.push_back(TomlPosition(row));
    const size_t cells = row.as_array()->size();
    if (cells != table.columns.size()) {
      throw DataError(
          fmt::format("{}: {} cells, but there are {} columns; "
                      "complete the row, with \"\" for an empty cell",
                      table.row_places.back(), cells, table.columns.size()));
    }
  }
  return table;
}

}  // namespace softmoe::golden
