// SPDX-License-Identifier: Apache-2.0
#include "golden/document/fingerprint.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <type_traits>

#include "core/config/config.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"

namespace softmoe::golden {
namespace {

const Field* Find(const std::vector<Field>& fields, const std::string& name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

// Parses the whole text as a finite number; nullopt if it is none.
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

// What was set, without the outcome, which depends on seeds and instruction
// set: "calibrated" of "calibrated: 1.067", and "calibrated x 2" of "calibrated
// x 2: 2.134".
std::string Setting(const std::string& value) {
  return value.starts_with("calibrated") ? value.substr(0, value.find(':'))
                                         : value;
}

struct KeyDefault {
  std::string value;
  bool later = false;  // a LaterKey: runs without the key had its default
};

// The default of every key of a configuration, by field.
const std::map<std::string, KeyDefault>& KeyDefaults() {
  static const std::map<std::string, KeyDefault> defaults = [] {
    std::map<std::string, KeyDefault> by_name;
    const Config unset;
    VisitConfig(unset, [&](const std::string& section, const std::string& key,
                           const auto& value, const auto& range) {
      using Range = std::decay_t<decltype(range)>;
      by_name[section + "." + key] = {TomlText(value),
                                      std::is_same_v<Range, LaterKey>};
    });
    return by_name;
  }();
  return defaults;
}

// The value in a run whose fields lack `name`: the default if the key was added
// later; "" if it cannot be known.
std::string WithoutField(const std::string& name) {
  const auto found = KeyDefaults().find(name);
  const bool later = found != KeyDefaults().end() && found->second.later;
  return later ? found->second.value : "";
}

// The field that stands in a golden for the results' field `own`, which it
// lacks. A run of ours states every key that its program knew. Rows of the
// paper and of others also lack keys that their router does not use: a default
// needs no mention there, and any other value is assumed.
Field MissingFromGolden(const Field& own, Origin golden_origin) {
  Field field = {own.name, "", FieldClass::kIgnore, Known::kUnknown};
  if (own.field_class != FieldClass::kMustMatch || own.value.empty()) {
    return field;
  }
  if (golden_origin == Origin::kOurRun) {
    return {own.name, WithoutField(own.name), FieldClass::kMustMatch,
            Known::kStated};
  }
  const auto found = KeyDefaults().find(own.name);
  const bool at_default =
      found != KeyDefaults().end() && SameValue(found->second.value, own.value);
  if (!at_default) field.field_class = FieldClass::kMustMatch;
  return field;
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

bool ChangesNoResult(const std::string& name) {
  return name == "training.micro_batch_sequences" ||
         name == "training.eval_every";
}

FingerprintComparison CompareFingerprints(const std::vector<Field>& ours,
                                          const std::vector<Field>& golden,
                                          Origin golden_origin) {
  std::vector<Field> fields = golden;
  for (const Field& own : ours) {
    if (Find(golden, own.name) == nullptr) {
      fields.push_back(MissingFromGolden(own, golden_origin));
    }
  }
  FingerprintComparison result;
  for (const Field& field : fields) {
    if (field.field_class == FieldClass::kIgnore ||
        ChangesNoResult(field.name)) {
      continue;
    }
    const Field* own = Find(ours, field.name);
    const std::string value =
        own == nullptr ? WithoutField(field.name) : own->value;
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
