// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/rewrite.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "core/errors.h"

namespace softmoe::mutation {
namespace {

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)); }

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// A text without white space that does not separate words, and the original
// offset of each character.
struct Condensed {
  std::string text;
  std::vector<size_t> offsets;
};

Condensed Condense(std::string_view text) {
  Condensed result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsSpace(text[i])) {
      const size_t next =
          std::find_if_not(text.begin() + i, text.end(), IsSpace) -
          text.begin();
      const bool parts = !result.text.empty() && next < text.size() &&
                         IsWord(result.text.back()) && IsWord(text[next]);
      if (!parts) continue;
      i = next - 1;
      result.text.push_back(' ');
    } else {
      result.text.push_back(text[i]);
    }
    result.offsets.push_back(i);
  }
  return result;
}

// Whether `i` is not inside a word.
bool IsBoundary(std::string_view text, size_t i) {
  return i == 0 || i >= text.size() || !IsWord(text[i - 1]) || !IsWord(text[i]);
}

// The places, between tokens, where `wanted` begins in `text`.
std::vector<size_t> Occurrences(std::string_view text,
                                std::string_view wanted) {
  std::vector<size_t> result;
  for (size_t at = text.find(wanted); at != text.npos;
       at = text.find(wanted, at + 1)) {
    if (IsBoundary(text, at) && IsBoundary(text, at + wanted.size())) {
      result.push_back(at);
    }
  }
  return result;
}

// For messages: the line that matches the beginning of `wanted`, and how far.
std::string LongestBeginning(std::string_view text, const Condensed& condensed,
                             std::string_view wanted) {
  size_t found = condensed.text.npos, length = wanted.size();
  for (; length > 3 && found == condensed.text.npos; --length) {
    found = condensed.text.find(wanted.substr(0, length));
  }
  if (found == condensed.text.npos) return "";
  return fmt::format("; line {} begins like it: '{}'",
                     LineOf(text, condensed.offsets[found]),
                     wanted.substr(0, length + 1));
}

// Skips the strings and comments of a text, and checks its brackets.
class Scan {
 public:
  explicit Scan(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (text.substr(i, 2) == "//" || text.substr(i, 2) == "/*") {
        has_comment = true;
        const std::string_view end = text[i + 1] == '/' ? "\n" : "*/";
        const size_t at = text.find(end, i + 2);
        if (at == text.npos) {
          is_closed = false;  // it would swallow what follows
          return;
        }
        i = at + end.size() - 1;
      } else if (const size_t end = QuotationEnd(text, i); end != i) {
        i = end;
        is_closed = is_closed && i < text.size();
      } else if (c == '#') {
        has_directive = true;
      } else if (kOpening.find(c) != kOpening.npos) {
        open_.push_back(c);
      } else if (const size_t k = kClosing.find(c); k != kClosing.npos) {
        is_closed = is_closed && !open_.empty() && open_.back() == kOpening[k];
        if (!open_.empty()) open_.pop_back();
      }
    }
    is_closed = is_closed && open_.empty();
  }

  bool has_comment = false, has_directive = false;
  bool is_closed = true;  // brackets, quotes and comments

 private:
  static constexpr std::string_view kOpening = "([{", kClosing = ")]}";

  std::string open_;
};

void RequireWritable(std::string_view text, const Edit& edit) {
  if (edit.span.begin >= edit.span.end || edit.span.end > text.size()) {
    throw DataError(
        fmt::format("{}: [{}, {}) is not a place in a text of {} bytes",
                    edit.id, edit.span.begin, edit.span.end, text.size()));
  }
  const std::string_view original =
      text.substr(edit.span.begin, edit.span.end - edit.span.begin);
  const Scan in_original(original), in_instead(edit.instead);
  if (!in_original.is_closed || !in_instead.is_closed) {
    throw DataError(fmt::format(
        "{}: brackets, quotes and comments must end where they begin, in '{}' "
        "as well as in '{}'",
        edit.id, original, edit.instead));
  }
  if (in_instead.has_comment || in_instead.has_directive) {
    throw DataError(
        fmt::format("{}: '{}' becomes one line: it can have no comment and no "
                    "preprocessor line",
                    edit.id, edit.instead));
  }
  if (Condense(original).text == Condense(edit.instead).text) {
    throw DataError(
        fmt::format("{}: '{}' is replaced by itself", edit.id, original));
  }
  if (edit.syntax == Syntax::kExpression && Condense(edit.instead).text == "") {
    throw DataError(fmt::format(
        "{}: an expression cannot be left out; name the statement", edit.id));
  }
}

class Writer {
 public:
  Writer(std::string_view text, const std::vector<Edit>& edits)
      : text_(text), edits_(edits) {}

  // Writes [begin, end), which contains the edits from the next one on.
  std::string Write(Span span) {
    std::string result;
    size_t at = span.begin;
    while (next_ < edits_.size() && edits_[next_].span.begin < span.end) {
      const Edit& edit = edits_[next_++];
      result += text_.substr(at, edit.span.begin - at);
      const std::string original = Write(edit.span);
      result +=
          edit.syntax == Syntax::kExpression
              ? fmt::format("(SOFTMOE_MUTANT_ON(\"{}\") ? ({}) : ({}))",
                            edit.id, InOneLine(edit.instead), original)
              : fmt::format(
                    "{{if (SOFTMOE_MUTANT_ON(\"{}\")) {{{}}} else {{{}}}}}",
                    edit.id, InOneLine(edit.instead), original);
      at = edit.span.end;
    }
    result += text_.substr(at, span.end - at);
    return result;
  }

 private:
  // Joins lines, so that the text that follows stays on its line.
  static std::string InOneLine(std::string text) {
    std::ranges::replace(text, '\n', ' ');
    return text;
  }

  std::string_view text_;
  const std::vector<Edit>& edits_;
  size_t next_ = 0;
};

}  // namespace

size_t QuotationEnd(std::string_view text, size_t i) {
  const char mark = text[i];
  // A digit separator, as in 1'000, is not a quotation mark.
  const bool begins =
      mark == '"' || (mark == '\'' && (i == 0 || !IsWord(text[i - 1])));
  if (!begins) return i;
  for (++i; i < text.size() && text[i] != mark; ++i) i += text[i] == '\\';
  return std::min(i, text.size());
}

int LineOf(std::string_view text, size_t offset) {
  return 1 +
         static_cast<int>(std::count(
             text.begin(), text.begin() + std::min(offset, text.size()), '\n'));
}

Span FindOnce(std::string_view text, const Pattern& pattern) {
  const Condensed condensed = Condense(text);
  const std::string whole = pattern.before + pattern.original + pattern.after;
  const std::string wanted = Condense(whole).text;
  const std::vector<size_t> found = Occurrences(condensed.text, wanted);
  if (wanted.empty() || found.empty()) {
    throw DataError(fmt::format("'{}' is not in it{}", whole,
                                LongestBeginning(text, condensed, wanted)));
  }
  if (found.size() > 1) {
    std::string lines;
    for (const size_t at : found) {
      lines += fmt::format("{}{}", lines.empty() ? "" : ", ",
                           LineOf(text, condensed.offsets[at]));
    }
    throw DataError(
        fmt::format("'{}' is in lines {}: give more of what is "
                    "`before` or `after` it",
                    whole, lines));
  }
  // How much of the condensed text precedes the original, and how much is
  // inside it.
  const auto count = [](std::string_view part) {
    return static_cast<size_t>(
        std::ranges::count_if(part, [](char c) { return !IsSpace(c); }));
  };
  size_t skip = count(pattern.before), length = count(pattern.original);
  size_t i = found[0];
  for (; skip > 0 || condensed.text[i] == ' '; ++i) {
    skip -= condensed.text[i] != ' ';
  }
  const size_t begin = condensed.offsets[i];
  size_t last = i;
  for (; length > 0; ++i) {
    if (condensed.text[i] == ' ') continue;
    last = i;
    --length;
  }
  return {begin, condensed.offsets[last] + 1};
}

std::string Rewrite(std::string_view text, std::vector<Edit> edits) {
  for (const Edit& edit : edits) RequireWritable(text, edit);
  // An edit that contains another comes before it.
  std::ranges::stable_sort(edits, [](const Edit& a, const Edit& b) {
    return a.span.begin != b.span.begin ? a.span.begin < b.span.begin
                                        : a.span.end > b.span.end;
  });
  std::vector<const Edit*> open;
  for (const Edit& edit : edits) {
    while (!open.empty() && open.back()->span.end <= edit.span.begin) {
      open.pop_back();
    }
    if (!open.empty() && open.back()->span.end < edit.span.end) {
      throw DataError(fmt::format(
          "{} and {} overlap in line {}, and neither holds the other: choose "
          "the same text for both, or texts that do not overlap",
          open.back()->id, edit.id, LineOf(text, edit.span.begin)));
    }
    open.push_back(&edit);
  }
  return Writer(text, edits).Write({0, text.size()});
}

}  // namespace softmoe::mutation
