// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/dict_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "core/errors.h"
#include "core/files/input_file.h"
#include "trainer/corpora/packed_file.h"

namespace softmoe::trainer {
namespace {

// Debian's largest dictionary has 60 MB.
constexpr int64_t kMaxInflatedBytes = int64_t{1} << 30;

constexpr char kAnotherPackage[] =
    "use another version of the package: put its .deb into corpora/packages of "
    "the cache";

// Cuts off and returns what precedes `separator`, or everything without one.
std::string_view Take(std::string_view* rest, char separator) {
  const size_t end = rest->find(separator);
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return part;
}

// Parses dictd's base 64; -1 unless `digits` is a number below 2^48.
int64_t DictNumber(std::string_view digits) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (digits.empty() || digits.size() > 8) return -1;
  int64_t value = 0;
  for (const char digit : digits) {
    const size_t place = kAlphabet.find(digit);
    if (place == std::string_view::npos) return -1;
    value = value * 64 + static_cast<int64_t>(place);
  }
  return value;
}

// The words of a line with one space between them; empty for a blank line.
std::string Squeeze(std::string_view line) {
  std::string out;
  for (const char c : line) {
    const bool space = c == ' ' || c == '\t' || c == '\r' || c == '\f';
    if (!space) {
      out.push_back(c);
    } else if (!out.empty() && out.back() != ' ') {
      out.push_back(' ');
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Removes every part from `open` to the next `close` for which `drop(inside)`
// holds; parts are looked for within `reach` characters.
template <typename Drop>
void RemoveParts(std::string* text, char open, char close, size_t reach,
                 const Drop& drop) {
  const std::string_view all = *text;
  std::string kept;
  for (size_t at = 0; at < all.size(); ++at) {
    if (all[at] == open) {
      const size_t inside = all.substr(at + 1, reach).find(close);
      if (inside != std::string_view::npos &&
          drop(all.substr(at + 1, inside))) {
        at += inside + 1;
        continue;
      }
    }
    kept += all[at];
  }
  *text = std::move(kept);
}

// Whether the text is a mark with which GCIDE's editors sign.
bool IsSourceMark(std::string_view inside) {
  constexpr std::array<std::string_view, 8> kSources = {
      "1913 Webster", "Webster 1913", "WordNet", "PJC",
      "RDH",          "JDP",          "AS",      "AE"};
  return std::any_of(
      kSources.begin(), kSources.end(), [&](std::string_view source) {
        return inside.starts_with(source) &&
               (inside.size() == source.size() || inside[source.size()] == ' ');
      });
}

bool IsDate(std::string_view line) {  // "(2006-10-10)"
  return line.size() == 12 && line.front() == '(' && line.back() == ')' &&
         line.find_first_not_of("0123456789-", 1) == 11;
}

// FOLDOC's "<networking, protocol>" at the beginning of a sense.
void RemoveFieldTags(std::string* text) {
  const std::string_view all = *text;
  std::string kept;
  const auto begins = [&] {
    const size_t size = kept.size();
    return size == 0 || (size >= 3 && kept.ends_with(". ") &&
                         kept[size - 3] >= '0' && kept[size - 3] <= '9');
  };
  for (size_t at = 0; at < all.size(); ++at) {
    if (all[at] == '<' && begins()) {
      const size_t length = all.substr(at, 60).find('>');
      if (length != std::string_view::npos) {
        at += length;
        if (at + 1 < all.size() && all[at + 1] == ' ') ++at;
        continue;
      }
    }
    kept += all[at];
  }
  *text = std::move(kept);
}

// A paragraph with its lines joined by spaces.
std::string CleanParagraph(std::string text) {
  const auto always = [](std::string_view) { return true; };
  RemoveParts(&text, '\\', '\\', 80, always);
  RemoveParts(&text, '[', ']', 80, IsSourceMark);
  std::erase(text, '{');
  std::erase(text, '}');
  text = Squeeze(text);
  RemoveFieldTags(&text);
  // "Abuse \A*buse"\, n." has become "Abuse , n.".
  std::string joined;
  for (const char c : text) {
    if (c == ',' && joined.ends_with(' ')) joined.pop_back();
    joined += c;
  }
  return joined;
}

}  // namespace

std::string InflateFile(const std::filesystem::path& path) {
  const InputFile file(path);
  PackedFile packed(file);
  std::string out;
  std::vector<char> part(1 << 16);
  while (const int64_t count = packed.Read(part.data(), std::ssize(part))) {
    out.append(part.data(), static_cast<size_t>(count));
    if (std::ssize(out) > kMaxInflatedBytes) {
      throw DataError(fmt::format("{}: more than {} bytes of text; {}",
                                  path.string(), kMaxInflatedBytes,
                                  kAnotherPackage));
    }
  }
  return out;
}

std::vector<std::string_view> DictEntries(std::string_view text,
                                          std::string_view index,
                                          const std::string& name) {
  std::set<std::pair<int64_t, int64_t>> places;
  std::set<std::pair<int64_t, int64_t>> about_the_database;
  int64_t line_number = 0;
  while (!index.empty()) {
    std::string_view line = Take(&index, '\n');
    ++line_number;
    const std::string_view word = Take(&line, '\t');
    const int64_t offset = DictNumber(Take(&line, '\t'));
    const int64_t length = DictNumber(Take(&line, '\t'));
    const auto size = static_cast<int64_t>(text.size());
    if (offset < 0 || length < 0 || offset > size || length > size - offset) {
      throw DataError(
          fmt::format("{}:{}: the entry of '{}' is not in the dictionary; {}",
                      name, line_number, word, kAnotherPackage));
    }
    const bool entry =
        !word.starts_with("00-database") && !word.starts_with("00database");
    (entry ? places : about_the_database).emplace(offset, length);
  }
  std::vector<std::string_view> entries;
  for (const auto& place : places) {
    if (about_the_database.contains(place)) continue;  // has two headwords
    const auto& [offset, length] = place;
    entries.push_back(
        text.substr(static_cast<size_t>(offset), static_cast<size_t>(length)));
  }
  return entries;
}

std::string CleanDictEntry(std::string_view entry) {
  std::string out;
  std::string paragraph;
  const auto finish_paragraph = [&] {
    const std::string clean = CleanParagraph(std::move(paragraph));
    paragraph.clear();
    if (clean.empty()) return;
    if (!out.empty()) out += "\n";
    out += clean;
  };
  while (!entry.empty()) {
    const std::string line = Squeeze(Take(&entry, '\n'));
    if (line.empty()) {
      finish_paragraph();
    } else if (!IsDate(line)) {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  finish_paragraph();
  return out;
}

std::vector<std::string> Fortunes(std::string_view text) {
  std::vector<std::string> fortunes;
  std::string fortune;
  const auto finish = [&] {
    while (fortune.ends_with('\n')) fortune.pop_back();
    if (!fortune.empty()) fortunes.push_back(std::move(fortune));
    fortune.clear();
  };
  while (!text.empty()) {
    std::string line;
    for (const char c : Take(&text, '\n')) {
      if (c != '\b') {
        line += c;
      } else if (!line.empty()) {
        // A whole character, of which all bytes but the first are 10xxxxxx.
        while (line.size() > 1 && (line.back() & 0xC0) == 0x80) line.pop_back();
        line.pop_back();
      }
    }
    line = Squeeze(line);
    if (line == "%") {
      finish();
    } else if (!fortune.empty() || !line.empty()) {
      fortune += line + "\n";
    }
  }
  finish();
  return fortunes;
}

}  // namespace softmoe::trainer
