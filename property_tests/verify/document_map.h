// SPDX-License-Identifier: Apache-2.0
//
// document_map.h - what tests read in documents that map one thing to another
// by links: tables and their links, and whether a file declares what a link
// names. A link to a function, constant or test is right if the code of the
// file, comments aside, declares it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_DOCUMENT_MAP_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_DOCUMENT_MAP_H_

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/paths.h"
#include "core/text/ascii.h"

namespace softmoe::verify::document_map {

using Names = std::set<std::string>;

// [`text`](folder/file#anchor), relative to the document's folder.
struct Link {
  std::string text, path, anchor;
};

struct Row {
  std::string name;  // "F7"; for a quantity, its first cell
  std::vector<std::string> cells;
};

inline bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// The positions of `word` in the text, as a whole word.
inline std::vector<size_t> PlacesOf(const std::string& word,
                                    const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(text[at - 1])) &&
        (end == text.size() || !IsWordCharacter(text[end]))) {
      places.push_back(at);
    }
  }
  return places;
}

inline bool HasWord(const std::string& text, const std::string& word) {
  return !PlacesOf(word, text).empty();
}

// The code without `//` comments and preprocessor lines.
inline std::string CodeOf(const std::string& text) {
  std::istringstream lines(text);
  std::string code;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) code += line.substr(0, line.find("//")) + '\n';
  }
  return code;
}

// Whether the code declares `name`: a type comes before it and a possible
// continuation after it, or it is inside a test macro.
inline bool Declares(const std::string& code, const std::string& name) {
  static const Names kNoTypes = {"return", "throw", "else", "new", "case"};
  for (const size_t at : PlacesOf(name, code)) {
    const size_t after = code.find_first_not_of(" \n", at + name.size());
    if (after == std::string::npos) continue;
    // A type may end with >, & or *; qualifiers may precede the name.
    static const std::regex kBefore(R"(\b(\w+)[>&*]*\s+[&*]?(?:\w+::)*$)");
    static const std::regex kTest(
        R"((?:TEST(?:_F|_P)?|RC_GTEST_PROP)\(\w+,\s*$)");
    const std::string before =
        code.substr(at - std::min<size_t>(at, 120), std::min<size_t>(at, 120));
    std::smatch match;
    if ((code[after] == ')' || code[after] == ',') &&
        std::regex_search(before, kTest)) {
      return true;
    }
    if (std::string("({[=;").find(code[after]) == std::string::npos) continue;
    if (std::regex_search(before, match, kBefore) &&
        !kNoTypes.contains(match[1])) {
      return true;
    }
  }
  return false;
}

// The text of a file of this repository; "" if there is none.
inline const std::string& TextOf(const std::filesystem::path& path_from_root) {
  static std::map<std::string, std::string> texts;
  const auto [found, is_new] = texts.try_emplace(path_from_root.string());
  if (is_new) {
    const auto root = RunfilePath("reference/NOTATION.md").parent_path() / "..";
    std::ifstream file(root / path_from_root);
    found->second.assign(std::istreambuf_iterator<char>(file), {});
  }
  return found->second;
}

// The first capture of `pattern` at each of its matches.
inline std::vector<std::string> All(const std::string& text,
                                    const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> result;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it) {
    result.push_back((*it)[1]);
  }
  return result;
}

inline Names NamesIn(const std::string& text, const char* pattern) {
  const std::vector<std::string> all = All(text, pattern);
  return {all.begin(), all.end()};
}

// The links of a table's cell, in order.
inline std::vector<Link> LinksOf(const std::string& cell) {
  static const std::regex kLink(R"(\[`?([^\]`]*)`?\]\(([^)#]*)#?([^)]*)\))");
  std::vector<Link> links;
  for (std::sregex_iterator it(cell.begin(), cell.end(), kLink), end; it != end;
       ++it) {
    links.push_back({(*it)[1], (*it)[2], (*it)[3]});
  }
  return links;
}

// The target of a link in a document in `folder`.
inline std::filesystem::path FromRoot(const Link& link,
                                      const char* folder = "reference") {
  return (folder / std::filesystem::path(link.path)).lexically_normal();
}

// The rows of the table below the heading `title`, without its header.
inline std::vector<Row> TableUnder(const std::string& title,
                                   const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != "## " + title) {
  }
  std::vector<Row> rows;
  int seen = 0;
  while (std::getline(lines, line) && line[0] != '#') {
    if (line[0] != '|' || ++seen <= 2) continue;
    Row row;
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) {
      row.cells.push_back(std::regex_replace(cell, std::regex("^ +| +$"), ""));
    }
    row.name = std::regex_replace(row.cells[0], std::regex("<[^>]*>"), "");
    rows.push_back(row);
  }
  return rows;
}

// The anchor that code hosts generate for a heading.
inline std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char c : LowerCase(heading)) {
    if (IsWordCharacter(c) || c == '-') {
      anchor += c;
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

// Whether this existing file declares `name`, in C++ or as a claim.
inline bool Has(const std::filesystem::path& path, const std::string& name) {
  static std::map<std::string, bool> known;
  const auto [found, is_new] = known.try_emplace(path.string() + " " + name);
  if (is_new) {
    const std::string& text = TextOf(path);
    found->second =
        path.extension() == ".toml"
            ? text.find("\nid = \"" + name + "\"\n") != std::string::npos
            : Declares(CodeOf(text), name);
  }
  return found->second;
}

}  // namespace softmoe::verify::document_map

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_DOCUMENT_MAP_H_
