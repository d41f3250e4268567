// SPDX-License-Identifier: Apache-2.0
#include "core/config/config_toml.h"

#include <fmt/core.h>

#include <type_traits>
#include <utility>

#include "core/config/config_check.h"
#include "core/config/config_enums.h"
#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/config/toml.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/text/suggestion.h"

namespace softmoe {
namespace {

std::string Position(const toml::source_region& source) {
  return fmt::format("{}:{}:{}", source.path ? *source.path : "TOML",
                     source.begin.line, source.begin.column);
}

// Returns the type of what the user wrote: "an integer", ...
const char* TypeOf(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a real number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

bool IsTomlText(const std::string& text) {
  try {
    return !toml::parse("text = " + TomlText(text)).empty();
  } catch (const toml::parse_error&) {
    return false;
  }
}

// Sets the fields of a configuration that a table mentions.
class TableReader {
 public:
  // If `origin` is not empty, it replaces the position of every value, and
  // `raw` is the value's text without TOML's quotes.
  TableReader(const toml::table& table, std::string origin, std::string raw,
              ConfigDraft* draft)
      : table_(table),
        origin_(std::move(origin)),
        raw_(std::move(raw)),
        draft_(draft) {}

  void Read() {
    auto note_name = [this](const char* section, const char* key, auto&,
                            const AllowedRange&) {
      keys_[section].push_back(key);
    };
    auto set_field = [this](const char* section, const char* key, auto& field,
                            const AllowedRange&) {
      const toml::table* values = table_[section].as_table();
      const toml::node* node = values ? values->get(key) : nullptr;
      if (node != nullptr) Set(std::string(section) + "." + key, *node, field);
    };
    // Names come first: a mistyped key is reported before a wrong value.
    VisitConfig(draft_->config, note_name);
    VisitRuntime(draft_->runtime, note_name);
    RefuseUnknownNames();
    VisitConfig(draft_->config, set_field);
    VisitRuntime(draft_->runtime, set_field);
  }

 private:
  std::string Where(const toml::source_region& source) const {
    return origin_.empty() ? Position(source) : origin_;
  }

  void RefuseUnknownNames() const {
    std::vector<std::string> sections;
    for (const auto& entry : keys_) sections.push_back(entry.first);
    for (const auto& [key, value] : table_) {
      const std::string section(key.str());
      const auto known = keys_.find(section);
      if (known == keys_.end()) {
        throw ConfigError(
            fmt::format("{}: unknown {} '{}'; {}", Where(key.source()),
                        value.is_table() ? "section" : "key", section,
                        SuggestAnywhere(section, sections)));
      }
      const toml::table* values = value.as_table();
      if (values == nullptr) {
        throw ConfigError(
            fmt::format("{}: '{}' is {}, but it is a section; write "
                        "[{}] and its keys below",
                        Where(key.source()), section, TypeOf(value), section));
      }
      for (const auto& [name, node] : *values) {
        const std::string text(name.str());
        bool found = false;
        for (const std::string& candidate : known->second) {
          found |= candidate == text;
        }
        if (!found) {
          throw ConfigError(fmt::format("{}: unknown key '{}'; {}",
                                        Where(name.source()), text,
                                        SuggestAnywhere(text, known->second)));
        }
      }
    }
  }

  // Like Suggestion, but also says if another section has the key.
  std::string SuggestAnywhere(const std::string& name,
                              const std::vector<std::string>& known) const {
    for (const auto& [section, keys] : keys_) {
      for (const std::string& key : keys) {
        if (key == name) {
          return fmt::format("it belongs to section [{}]", section);
        }
      }
    }
    return Suggestion(name, known);
  }

  template <typename T>
  void Set(const std::string& key, const toml::node& node, T& field) {
    const std::string where = Where(node.source());
    auto refuse = [&](const std::string& needed) {
      throw ConfigError(fmt::format("{}: '{}' is {}, but must be {}", where,
                                    key, TypeWritten(node), needed));
    };
    if constexpr (std::is_same_v<T, int64_t>) {
      if (!node.is_integer()) {
        refuse("an integer (without decimal point or exponent)");
      }
      field = node.as_integer()->get();
    } else if constexpr (std::is_same_v<T, double>) {
      const std::optional<double> number = node.value<double>();
      if (!number) refuse("a number");
      field = *number + 0.0;  // -0.0 would have another hash than 0.0
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      field = node.value<double>();
      const auto* text = node.as_string();
      if (!field && (text == nullptr || text->get() != "calibrated")) {
        refuse("a number or \"calibrated\"");
      }
    } else if constexpr (std::is_enum_v<T>) {
      const std::string text = Text(node);
      const auto value = ParseEnum<T>(text);
      if (!value) {
        const auto choices = EnumChoices<T>();
        const std::string meant = DidYouMean(text, choices);
        throw ConfigError(fmt::format("{}: '{}' is '{}', but must be {}{}",
                                      where, key, text, Listed(choices, "or"),
                                      meant.empty() ? "" : "; " + meant));
      }
      field = *value;
    } else {
      static_assert(std::is_same_v<T, std::string>);
      if (!node.is_string() && origin_.empty()) refuse("text in quotes");
      field = Text(node);
      // An option can hold any bytes; a result that holds them could not be
      // read back.
      if (!IsTomlText(field)) {
        throw ConfigError(
            fmt::format("{}: '{}' is not UTF-8 text; rename it", where, key));
      }
    }
    draft_->origins[key] = where;
  }

  // toml++ reads no integer beyond 2^53 as a double. An override that TOML
  // cannot read is text; some integers are such overrides.
  std::string TypeWritten(const toml::node& node) const {
    if (node.is_integer() && !node.value<double>()) {
      return "an integer beyond 2^53";
    }
    const size_t begin = raw_.starts_with('-') ? 1 : 0;
    const bool digits =
        begin < raw_.size() &&
        raw_.find_first_not_of("0123456789", begin) == raw_.npos;
    return node.is_string() && digits
               ? "an integer with leading zeros or more than 64 bits"
               : TypeOf(node);
  }

  // Returns the text of a string node; for any other node, what the override
  // says or, in a file, the node's type.
  std::string Text(const toml::node& node) const {
    if (const auto* text = node.as_string()) return text->get();
    return origin_.empty() ? std::string(TypeOf(node)) : raw_;
  }

  const toml::table& table_;
  std::string origin_;
  std::string raw_;
  ConfigDraft* draft_;
  std::map<std::string, std::vector<std::string>> keys_;  // section -> keys
};

// toml++ 3.3 nests a table for each dot of a key, without a limit, and its
// recursive destructor would exhaust the stack. A key stands on one line.
constexpr int kMaxPointsPerLine = 64;

void CheckNesting(const std::string& text, const std::string& name) {
  int64_t line = 1;
  int points = 0;
  for (const char c : text) {
    points += c == '.' ? 1 : 0;
    if (points > kMaxPointsPerLine) {
      throw ConfigError(
          fmt::format("{}:{}: this line has more than {} dots, and a key with "
                      "so many would nest too deep; split the line",
                      name, line, kMaxPointsPerLine));
    }
    if (c == '\n') {
      ++line;
      points = 0;
    }
  }
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

void ConfigDraft::Apply(const toml::table& table) {
  ConfigDraft changed = *this;  // all or nothing
  TableReader(table, "", "", &changed).Read();
  *this = std::move(changed);
}

void ConfigDraft::ApplyOverride(const std::string& assignment) {
  const std::string origin = "--set " + assignment;
  const size_t equals = assignment.find('=');
  const std::string name = Trimmed(assignment.substr(0, equals));
  const size_t dot = name.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 ||
      dot + 1 == name.size()) {
    throw ConfigError(origin +
                      ": needs the form section.key=value, for example "
                      "router.tau=1.8");
  }
  const std::string raw = Trimmed(assignment.substr(equals + 1));
  toml::table values;
  const std::string key = name.substr(dot + 1);
  // A line break could smuggle in other keys; such a value is plain text.
  if (raw.find_first_of("\r\n") == std::string::npos) {
    CheckNesting(raw, origin);
    try {
      toml::table parsed = toml::parse("value = " + raw);
      parsed["value"].visit(
          [&](const auto& node) { values.insert(key, node); });
    } catch (const toml::parse_error&) {
    }
  }
  if (values.empty()) values.insert(key, raw);
  toml::table table;
  table.insert(name.substr(0, dot), std::move(values));
  ConfigDraft changed = *this;
  TableReader(table, origin, raw, &changed).Read();
  *this = std::move(changed);
}

void ConfigDraft::Resolve() {
  FollowBatchSizes(origins.contains("training.micro_batch_sequences"),
                   origins.contains("training.balance_group_sequences"),
                   &config.training);
  std::vector<ConfigProblem> problems = ConfigProblems(config);
  for (ConfigProblem& problem : RuntimeProblems(runtime)) {
    problems.push_back(std::move(problem));
  }
  std::string text;
  for (const ConfigProblem& problem : problems) {
    if (!text.empty()) text += "\n";
    const auto origin = origins.find(problem.key);
    if (origin != origins.end()) text += origin->second + ": ";
    text += problem.message;
  }
  if (!text.empty()) throw ConfigError(text);
}

std::string TrimmedOverride(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return Trimmed(assignment);
  return Trimmed(assignment.substr(0, equals)) + "=" +
         Trimmed(assignment.substr(equals + 1));
}

toml::table ParseToml(const std::string& text, const std::string& name) {
  CheckNesting(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}: not valid TOML: {}; correct the line",
                                  Position(error.source()),
                                  error.description()));
  }
}

toml::table ParseTomlFile(const std::filesystem::path& path) {
  return ParseToml(ReadSmallText(path), path.string());
}

ConfigDraft LoadConfig(const std::filesystem::path& path,
                       const std::vector<std::string>& overrides) {
  ConfigDraft draft;
  draft.Apply(ParseTomlFile(path));
  for (const std::string& assignment : overrides) {
    draft.ApplyOverride(assignment);
  }
  draft.Resolve();
  return draft;
}

Config ParseConfig(const std::string& text, const std::string& name) {
  try {
    ConfigDraft draft;
    draft.Apply(ParseToml(text, name));
    draft.Resolve();
    return draft.config;
  } catch (const ConfigError& error) {
    throw DataError(
        fmt::format("{}; the file was written by another version of this "
                    "program, or is damaged: delete it to begin anew, or use "
                    "the version that wrote it",
                    error.what()));
  }
}

std::string TomlPosition(const toml::node& node) {
  return Position(node.source());
}

}  // namespace softmoe
