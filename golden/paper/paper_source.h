// SPDX-License-Identifier: Apache-2.0
//
// paper_source.h - builds the paper's goldens from their sources, the TOML
// files of golden/paper: printed tables, and everything that belongs to them.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_

#include <filesystem>
#include <string>
#include <vector>

#include "golden/document/document.h"

namespace softmoe::golden {

// A table of the paper as printed: the names of the columns and the cells of
// each row, as text.
struct PrintedTable {
  std::string place;  // the table's, for messages
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // each as long as `columns`
  std::vector<std::string> row_places;         // FILE:LINE:COLUMN of each row

  // The text of row `row` in `column`; "" is an empty cell. Throws DataError
  // with the nearest existing name if there is no such column.
  const std::string& Get(size_t row, const std::string& column) const;
};

// Throws EnvironmentError if the file cannot be read, ConfigError if it is not
// TOML, and DataError (FILE:LINE:COLUMN) if it has other keys than `columns`
// and `rows`, no row, or a row with too few or too many cells.
PrintedTable ReadPrintedTable(const std::filesystem::path& path);

// Builds the document of paper.toml, the tables that it names, notes.toml and
// claims.toml in `folder`: intervals from the rounding rules, the counts that
// percentages stand for, fields by row, notes on the cells that they concern.
// Throws DataError for any inconsistency, including a published verdict in
// claims.toml that the paper's own numbers contradict, with FILE:LINE:COLUMN
// or, for what FirstProblem finds, the place in the document;
// ConfigError for what is not TOML; and EnvironmentError for a missing file.
Document BuildPaper(const std::filesystem::path& folder);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_
