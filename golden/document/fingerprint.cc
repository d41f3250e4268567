// SPDX-License-Identifier: Apache-2.0
#include "golden/document/fingerprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace softmoe::golden {
namespace {

const Field* Find(const std::vector<Field>& fields, const std::string& name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

// The finite number that the whole text is, or nullopt.
std::optional<double> Number(const std::string& text) {
  // strtod also accepts spaces, "0x" and "nan", which are not values here.
  if (text.empty() ||
      text.find_first_not_of("0123456789+-.eE") != std::string::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// "calibrated" of "calibrated: 1.067": what was set, without what came of it,
// which other seeds or another instruction set change.
std::string Setting(const std::string& value) {
  constexpr std::string_view kCalibrated = "calibrated";
  return value.starts_with(kCalibrated) ? std::string(kCalibrated) : value;
}

}  // namespace

std::vector<Field> FieldsOf(const Document& document, const Row& row) {
  std::vector<Field> fields = row.fields;
  for (const Field& field : document.fields) {
    if (Find(row.fields, field.name) == nullptr) fields.push_back(field);
  }
  return fields;
}

std::string FieldValue(const Document& document, const Row& row,
                       const std::string& name) {
  const Field* field = Find(row.fields, name);
  if (field == nullptr) field = Find(document.fields, name);
  return field == nullptr ? "" : field->value;
}

std::string WithoutQuotes(const std::string& text) {
  const bool quoted =
      text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool SameValue(const std::string& a, const std::string& b) {
  const std::string left = Setting(WithoutQuotes(a));
  const std::string right = Setting(WithoutQuotes(b));
  if (left == right) return true;
  const std::optional<double> x = Number(left), y = Number(right);
  return x && y && *x == *y;
}

FingerprintComparison CompareFingerprints(const std::vector<Field>& ours,
                                          const std::vector<Field>& golden) {
  FingerprintComparison result;
  for (const Field& field : golden) {
    if (field.field_class == FieldClass::kIgnore) continue;
    const Field* own = Find(ours, field.name);
    const std::string value = own == nullptr ? "" : own->value;
    const FieldDifference difference = {field.name, field.value, value};
    const bool same = !value.empty() && SameValue(field.value, value);
    if (field.field_class == FieldClass::kReport) {
      if (!same) result.reported.push_back(difference);
    } else if (field.known != Known::kStated) {
      result.open.push_back(difference);
      result.open.back().departs = field.known == Known::kUnknown &&
                                   !field.value.empty() &&
                                   WithoutQuotes(value) == "none";
    } else if (!same) {
      result.differences.push_back(difference);
    }
  }
  return result;
}

std::string DescribeDifference(const FieldDifference& difference) {
  return fmt::format(
      "{} in the golden, {}{}",
      difference.golden.empty() ? "not known" : difference.golden,
      difference.ours.empty() ? "not said here" : difference.ours + " here",
      difference.departs ? ", which departs from a stated fact" : "");
}

}  // namespace softmoe::golden
