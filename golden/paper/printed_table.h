// SPDX-License-Identifier: Apache-2.0
//
// printed_table.h - a table of the paper as printed: golden/paper/*.toml with
// the names of the columns and the cells of each row, as text.
#ifndef SOFTMOE_GOLDEN_PAPER_PRINTED_TABLE_H_
#define SOFTMOE_GOLDEN_PAPER_PRINTED_TABLE_H_

#include <filesystem>
#include <string>
#include <vector>

namespace softmoe::golden {

struct PrintedTable {
  std::string place;  // the table's, for messages
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`
  std::vector<std::string> row_places;         // FILE:LINE:COLUMN of each row

  // The text of row `row` in `column`; "" is an empty cell. Throws DataError
  // with the nearest existing name if there is no such column.
  const std::string& Get(size_t row, const std::string& column) const;
};

// Throws EnvironmentError if the file cannot be read, DataError
// (FILE:LINE:COLUMN) if it has other keys than `columns` and `rows`, a column
// twice, no row, or a row with too few or too many cells.
PrintedTable ReadPrintedTable(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PRINTED_TABLE_H_
