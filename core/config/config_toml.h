// SPDX-License-Identifier: Apache-2.0
//
// config_toml.h - configurations from TOML files, tables and `--set` options.
//
// Every message about a value says where the user wrote it: FILE:LINE:COLUMN,
// or the `--set` option. Unknown keys are errors with a suggestion.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_TOML_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_TOML_H_

#include <toml++/impl/forward_declarations.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe {

// A configuration under construction. Later calls override earlier ones.
// Nothing is range-checked before Resolve, so one override can correct another.
struct ConfigDraft {
  Config config;
  RuntimeConfig runtime;
  // "router.tau" -> "smoke.toml:12:7" or "--set router.tau=2"; keys that
  // nobody set have their defaults and are absent.
  std::map<std::string, std::string> origins;

  // Sets the keys of the sections [model], [router], [training], [data] and
  // [runtime] found in `table`, e.g. a row of a grid. The table must come from
  // a parser that was given the file's name. Throws ConfigError with position
  // for unknown sections and keys and for values of a wrong type.
  void Apply(const toml::table& table);

  // Sets one key from "section.key=value", the value in TOML syntax; text needs
  // no quotes. Throws a ConfigError that shows the option.
  void ApplyOverride(const std::string& assignment);

  // Sets the keys that nobody has set and that follow from others
  // (config_check.h). Throws a ConfigError with everything that ConfigProblems
  // and RuntimeProblems find, each line with its origin.
  void Resolve();
};

// Returns `assignment`, as ApplyOverride takes it, without spaces at its ends
// and around its "=".
std::string TrimmedOverride(const std::string& assignment);

// Parses TOML text, which messages call `name` (a file name). Throws a
// ConfigError with position.
toml::table ParseToml(const std::string& text, const std::string& name);

// Like ParseToml, for a file. Throws EnvironmentError if it cannot be read, and
// DataError if it is too long (ReadSmallText).
toml::table ParseTomlFile(const std::filesystem::path& path);

// Applies the defaults, then the file, then the overrides, and validates.
ConfigDraft LoadConfig(const std::filesystem::path& path,
                       const std::vector<std::string>& overrides);

// The inverse of ConfigToToml, for configurations stored in result files.
// Throws DataError with the remedy if this version does not take it; messages
// call the text `name`.
Config ParseConfig(const std::string& text, const std::string& name);

// Returns "FILE:LINE:COLUMN" of a node that a parser has read.
std::string TomlPosition(const toml::node& node);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_TOML_H_
