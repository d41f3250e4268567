// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/python_text.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "trainer/corpora/case_tables.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

constexpr uint32_t kSigma = 0x3A3;
constexpr char kFinalSigma[] = "\u03C2";

// The first byte of the character before `end` > 0.
size_t CharacterBefore(std::string_view text, size_t end) {
  do --end;
  while (Continues(text[end]));
  return end;
}

size_t CharacterAfter(std::string_view text, size_t begin) {
  do ++begin;
  while (begin < text.size() && Continues(text[begin]));
  return begin;
}

// The character of these bytes.
uint32_t Decode(std::string_view bytes) {
  const uint32_t lead = static_cast<uint8_t>(bytes[0]);
  if (bytes.size() == 1) return lead;
  uint32_t character = lead & (0x7F >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    character = character << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  }
  return character;
}

// str.isspace of one character.
bool IsSpace(uint32_t c) {
  return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// The last entry of a table, sorted by `key`, that begins at or before
// `character`; nullptr if there is none.
template <typename Entry>
const Entry* Find(std::span<const Entry> table, uint32_t Entry::*key,
                  uint32_t character) {
  const auto after = std::ranges::upper_bound(table, character, {}, key);
  return after == table.begin() ? nullptr : &*std::prev(after);
}

bool IsIn(std::span<const CharacterRange> ranges, uint32_t character) {
  const auto* range = Find(ranges, &CharacterRange::first, character);
  return range != nullptr && character <= range->last;
}

void AppendCase(std::span<const CaseRun> runs, std::span<const CaseText> texts,
                uint32_t character, std::string* text) {
  const auto* several = Find(texts, &CaseText::character, character);
  if (several != nullptr && several->character == character) {
    *text += several->text;
    return;
  }
  const auto* run = Find(runs, &CaseRun::first, character);
  const bool mapped = run != nullptr && character <= run->last &&
                      (character - run->first) % run->step == 0;
  AppendUtf8(
      mapped ? character + static_cast<uint32_t>(run->offset) : character,
      text);
}

// Whether a sigma at [begin, end) ends a word: a letter with case comes before
// it and none after it, whatever marks stand between.
bool EndsWord(std::string_view text, size_t begin, size_t end) {
  bool before = false;
  while (begin > 0) {
    const size_t at = CharacterBefore(text, begin);
    const uint32_t c = Decode(text.substr(at, begin - at));
    begin = at;
    if (IsIn(kCaseIgnorable, c)) continue;
    before = IsIn(kCased, c);
    break;
  }
  if (!before) return false;
  while (end < text.size()) {
    const size_t next = CharacterAfter(text, end);
    const uint32_t c = Decode(text.substr(end, next - end));
    end = next;
    if (!IsIn(kCaseIgnorable, c)) return !IsIn(kCased, c);
  }
  return true;
}

}  // namespace

int64_t CodePoints(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return !Continues(c); });
}

std::string_view StripEnd(std::string_view text) {
  while (!text.empty()) {
    const size_t last = CharacterBefore(text, text.size());
    if (!IsSpace(Decode(text.substr(last)))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view Strip(std::string_view text) {
  while (!text.empty()) {
    const size_t next = CharacterAfter(text, 0);
    if (!IsSpace(Decode(text.substr(0, next)))) break;
    text = text.substr(next);
  }
  return StripEnd(text);
}

std::string Capitalize(std::string_view text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = CharacterAfter(text, begin);
    const uint32_t c = Decode(text.substr(begin, end - begin));
    if (begin == 0) {
      AppendCase(kTitleRuns, kTitleTexts, c, &result);
    } else if (c == kSigma && EndsWord(text, begin, end)) {
      result += kFinalSigma;
    } else {
      AppendCase(kLowerRuns, kLowerTexts, c, &result);
    }
    begin = end;
  }
  return result;
}

std::string ReplaceAll(std::string_view text, std::string_view from,
                       std::string_view to) {
  std::string result;
  while (true) {
    const size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(at + from.size());
  }
}

std::string RemoveBrackets(std::string_view text) {
  std::string result;
  size_t end = 0;  // the first ] or line end behind the last [ looked at
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') {
      if (end <= at) end = text.find_first_of("]\n", at);
      if (end != std::string_view::npos && text[end] == ']') {
        at = end;
        continue;
      }
    }
    result += text[at];
  }
  return result;
}

}  // namespace softmoe::trainer
