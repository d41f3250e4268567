// SPDX-License-Identifier: Apache-2.0
#include "core/config.h"

#include <string>

#include "core/config_check.h"
#include "core/config_enums.h"
#include "core/config_fields.h"
#include "core/config_text.h"
#include "core/errors.h"
#include "core/sha256.h"

namespace softmoe {

void ValidateConfig(const Config& config) {
  std::string text;
  for (const ConfigProblem& problem : ConfigProblems(config)) {
    if (!text.empty()) text += "\n";
    text += problem.message;
  }
  if (!text.empty()) throw ConfigError(text);
}

std::string ConfigToToml(const Config& config) {
  std::string toml;
  std::string current;
  VisitConfig(config, [&](const std::string& section, const std::string& key,
                          const auto& field, const AllowedRange&) {
    if (section != current) {
      toml += (current.empty() ? "[" : "\n[") + section + "]\n";
      current = section;
    }
    toml += key + " = " + TomlText(field) + "\n";
  });
  return toml;
}

std::string ConfigHash(const Config& config) {
  return Sha256Hex(ConfigToToml(config)).substr(0, 16);
}

const char* RouterKindName(RouterKind kind) { return EnumName(kind); }

}  // namespace softmoe
