// SPDX-License-Identifier: Apache-2.0
#include "golden/document/document_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace softmoe::golden::internal {
namespace {

constexpr const char* kMeasure =
    "store what was measured; a run that gave no number has an empty cell "
    "with the flag DIVERGED";

// Whether the text is a placeholder to be filled in later.
bool IsPlaceholder(const std::string& text) {
  std::string lower;
  for (unsigned char c : text) lower += static_cast<char>(std::tolower(c));
  static const std::set<std::string> kWords = {
      "todo", "tbd",  "fixme",       "xxx",   "?",          "??",
      "???",  "null", "placeholder", "dummy", "lorem ipsum"};
  return kWords.contains(lower) || lower.starts_with("todo:") ||
         lower.starts_with("fixme:");
}

bool IsPlaceholder(double value) {
  static const std::set<double> kSentinels = {-999, -9999, -99999, -999999};
  return kSentinels.contains(value) || std::fabs(value) >= 1e300;
}

}  // namespace

void Fail(const std::string& place, const std::string& problem,
          const std::string& remedy) {
  throw Problem{fmt::format("'{}' {}; {}", place, problem, remedy)};
}

void CheckText(const std::string& place, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    Fail(place, "contains a NUL character", "remove it");
  }
  if (IsPlaceholder(text)) {
    Fail(place, fmt::format("is the placeholder '{}'", text), kFillIn);
  }
}

void CheckNonEmpty(const std::string& place, const std::string& text) {
  CheckText(place, text);
  if (text.empty()) Fail(place, "is empty", kFillIn);
}

void CheckFinite(const std::string& place, double value) {
  if (!std::isfinite(value)) {
    Fail(place, fmt::format("is {}", value), kMeasure);
  }
  if (IsPlaceholder(value)) {
    Fail(place, fmt::format("is the placeholder {}", value), kMeasure);
  }
}

// Ids of tables and columns are also names of HDF5 groups.
void CheckPathId(const std::string& place, const std::string& id) {
  const bool ok = !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!ok) {
    Fail(place, fmt::format("has the id '{}'", id),
         "use lower-case letters, digits and '_'");
  }
  if (IsPlaceholder(id)) Fail(place, "is a placeholder", kFillIn);
}

// Ids of rows, notes and claims, which claims and notes refer to.
void CheckId(const std::string& place, const std::string& id) {
  CheckNonEmpty(place, id);
  const bool ok = std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return c > ' ' && c != ':' && c != '\'' && c < 127;
  });
  if (!ok) {
    Fail(place, fmt::format("has the id '{}'", id),
         "use printable ASCII without spaces, ':' and quotes");
  }
}

void CheckUnique(const std::string& place, const std::string& id,
                 std::set<std::string>* seen) {
  if (!seen->insert(id).second) {
    Fail(place, fmt::format("occurs twice: '{}'", id), "rename one of them");
  }
}

}  // namespace softmoe::golden::internal
