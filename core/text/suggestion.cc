// SPDX-License-Identifier: Apache-2.0
#include "core/text/suggestion.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/text/ascii.h"

namespace softmoe {
namespace {

// Returns the one spelling for all ways to write a name.
std::string Spelling(const std::string& name) {
  std::string spelling = LowerCase(name);
  std::ranges::replace(spelling, '-', '_');
  return spelling;
}

// Returns the distance from `typed` to `known`. A mere part of a name counts as
// one step.
int Distance(const std::string& typed, const std::string& known) {
  const std::string a = Spelling(typed), b = Spelling(known);
  const int distance = EditDistance(a, b);
  const bool part =
      a.size() >= 3 && b.size() >= 3 &&
      (a.find(b) != std::string::npos || b.find(a) != std::string::npos);
  return part ? std::min(distance, 1) : distance;
}

}  // namespace

int EditDistance(const std::string& a, const std::string& b) {
  // Three rows of the table: the one before the previous, the previous, this.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1,
                         above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string DidYouMean(const std::string& unknown,
                       const std::vector<std::string>& known) {
  // If more than a third of the letters were wrong, it would be a guess.
  int best = std::max(1, static_cast<int>(unknown.size()) / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : known) {
    const int distance = Distance(unknown, candidate);
    if (distance < best) {
      best = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "" : "did you mean '" + *nearest + "'?";
}

std::string Suggestion(const std::string& unknown,
                       const std::vector<std::string>& known) {
  const std::string meant = DidYouMean(unknown, known);
  return meant.empty() ? "known are " + Listed(known, "and") : meant;
}

std::string Listed(const std::vector<std::string>& names, const char* last) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : fmt::format(" {} ", last);
    text += "'" + names[i] + "'";
  }
  return text;
}

}  // namespace softmoe
