// SPDX-License-Identifier: Apache-2.0
//
// canonical_toml.h - the text of a configuration that is stored and hashed.
#ifndef SOFTMOE_CORE_CONFIG_CANONICAL_TOML_H_
#define SOFTMOE_CORE_CONFIG_CANONICAL_TOML_H_

#include <string>
#include <type_traits>
#include <vector>

#include "core/config/config_fields.h"
#include "core/config/config_text.h"

namespace softmoe {

// The keys that `visit_all(config, visit)` visits, as VisitConfig does, in
// sections, in order. A LaterKey with its default is left out, so that adding a
// key changes neither the text nor the hash.
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

#endif  // SOFTMOE_CORE_CONFIG_CANONICAL_TOML_H_
