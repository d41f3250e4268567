// SPDX-License-Identifier: Apache-2.0
#include "core/config/config.h"

#include <string>

#include "core/config/config_check.h"
#include "core/config/config_enums.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/errors.h"
#include "core/files/sha256.h"

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
  return CanonicalToml(
      config, [](const Config& c, auto&& visit) { VisitConfig(c, visit); });
}

std::string ConfigHash(const Config& config) {
  return Sha256Hex(ConfigToToml(config)).substr(0, 16);
}

const char* RouterKindName(RouterKind kind) { return EnumName(kind); }

}  // namespace softmoe
