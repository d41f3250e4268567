// SPDX-License-Identifier: Apache-2.0
//
// text_table.h - tables for a terminal, whose columns line up, and for a
// document; sizes as people read them.
#ifndef SOFTMOE_CORE_TEXT_TEXT_TABLE_H_
#define SOFTMOE_CORE_TEXT_TEXT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace softmoe {

// Rows of texts under a header.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);

  // `row` has as many texts as the header; InternalError otherwise.
  void Add(std::vector<std::string> row);
  size_t num_rows() const { return rows_.size() - 1; }  // without the header
  // The first is the header.
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

  // Returns lines with two spaces between columns and a rule under the header.
  // Columns whose entries are all numbers are right-aligned; no line ends with
  // spaces.
  std::string Text() const;
  // Returns a table for a document; texts are taken as they are.
  std::string Markdown() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Returns `text` in lines of at most `width` characters, or of one longer word,
// broken at spaces; lines after the first start with `indent` spaces.
std::string Wrap(const std::string& text, size_t width, size_t indent);

// "512 B", "3.2 KiB", "6.1 GiB".
std::string FormatBytes(int64_t bytes);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_TEXT_TABLE_H_
