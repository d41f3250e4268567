// SPDX-License-Identifier: Apache-2.0
#include "core/text/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.h"

namespace softmoe {
namespace {

// Returns the number of UTF-8 characters, which a terminal aligns our texts by.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Digits, with whatever accompanies a measured number: 1.2e+07, 3 (5), 33.4%,
// 0.298 M.
bool LooksLikeNumber(const std::string& text) {
  return text.empty() || text == "-" ||
         text.find_first_not_of("0123456789+-.,*! ()e%M") == std::string::npos;
}

}  // namespace

TextTable::TextTable(std::vector<std::string> header) {
  rows_.push_back(std::move(header));
}

void TextTable::Add(std::vector<std::string> row) {
  SOFTMOE_CHECK(row.size() == rows_[0].size())
      << row.size() << " entries for " << rows_[0].size() << " columns";
  rows_.push_back(std::move(row));
}

std::string TextTable::Text() const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns);
  std::vector<bool> numeric(columns, true);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], Width(rows_[r][c]));
      if (r > 0 && !LooksLikeNumber(rows_[r][c])) numeric[c] = false;
    }
  }
  std::string text;
  auto add_line = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      const std::string padding(widths[c] - Width(row[c]), ' ');
      if (c > 0) line += "  ";
      line += numeric[c] ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(rows_[0]);
  std::vector<std::string> rule;
  for (size_t width : widths) rule.push_back(std::string(width, '-'));
  add_line(rule);
  for (size_t r = 1; r < rows_.size(); ++r) add_line(rows_[r]);
  return text;
}

std::string TextTable::Markdown() const {
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    text += fmt::format("| {} |\n", fmt::join(rows_[r], " | "));
    if (r > 0) continue;
    for (size_t c = 0; c < rows_[0].size(); ++c) text += c == 0 ? "|-|" : "-|";
    text += "\n";
  }
  return text;
}

std::string Wrap(const std::string& text, size_t width, size_t indent) {
  std::string result, line, word;
  auto flush_word = [&] {
    if (word.empty()) return;
    if (!line.empty() && Width(line) + 1 + Width(word) > width) {
      result += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      const bool at_start = line.find_first_not_of(' ') == std::string::npos;
      line += (at_start ? "" : " ") + word;
    }
    word.clear();
  };
  for (char c : text) {
    if (c == ' ') {
      flush_word();
    } else {
      word += c;
    }
  }
  flush_word();
  return result + line;
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (value < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

}  // namespace softmoe
