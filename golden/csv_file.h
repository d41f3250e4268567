// SPDX-License-Identifier: Apache-2.0
//
// csv_file.h - the plain CSV files of golden/paper: a line of names, then
// lines of as many fields; no quotes, no spaces to strip.
#ifndef SOFTMOE_GOLDEN_CSV_FILE_H_
#define SOFTMOE_GOLDEN_CSV_FILE_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace softmoe::golden {

// What one file holds, as text.
struct CsvFile {
  std::filesystem::path path;  // for messages
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // each as long as `names`

  // The field `name` of row `row` of `rows`. Throws DataError if there is no
  // such column, with the nearest name there is.
  const std::string& Get(size_t row, const std::string& name) const;
};

// Throws EnvironmentError if the file cannot be read, DataError (FILE:LINE)
// if a line has too few or too many fields, or a quote.
CsvFile ReadCsv(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_CSV_FILE_H_
