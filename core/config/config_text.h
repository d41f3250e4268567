// SPDX-License-Identifier: Apache-2.0
//
// config_text.h - a configuration as TOML text: each value, and the whole text
// that is stored and hashed.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/config/config_enums.h"
#include "core/config/config_fields.h"

namespace softmoe {

// Return the text that TOML reads back as the same value.
std::string TomlText(int64_t value);
std::string TomlText(double value);  // shortest, always with '.' or 'e'
std::string TomlText(const std::string& value);          // quoted and escaped
std::string TomlText(const std::optional<double>& tau);  // or "calibrated"
template <typename E>
requires std::is_enum_v<E> std::string TomlText(E value) {
  return TomlText(std::string(EnumName(value)));
}

// Returns the keys that `visit_all(config, visit)` visits, as VisitConfig does,
// in sections and in order. A LaterKey with its default is left out, so adding
// a key changes neither the text nor the hash.
template <typename T, typename VisitAll>
std::string CanonicalToml(const T& config, const VisitAll& visit_all) {
  std::vector<std::string> defaults;
  const T unset;
  visit_all(unset, [&](const auto&, const auto&, const auto& field,
                       const auto&) { defaults.push_back(TomlText(field)); });
  std::string toml, current;
  size_t i = 0;
  visit_all(config, [&](const std::string& section, const std::string& key,
                        const auto& field, const auto& range) {
    const std::string value = TomlText(field);
    const bool is_default = value == defaults[i++];
    using Range = std::decay_t<decltype(range)>;
    if (std::is_same_v<Range, LaterKey> && is_default) return;
    if (section != current) {
      toml += (current.empty() ? "[" : "\n[") + section + "]\n";
      current = section;
    }
    toml += key + " = " + value + "\n";
  });
  return toml;
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_TEXT_H_
