// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/spelling.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/errors.h"
#include "property_tests/verify/engine/draw.h"

namespace softmoe::verify {
namespace {

// The command that `arguments` name, if a case may be given to it.
const CLI::App* FindCommand(const CLI::App& app,
                            const std::vector<std::string>& arguments) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!arguments.empty() && command->get_name() == arguments[0] &&
        command->get_option_no_throw(kCaseWords) != nullptr) {
      return command;
    }
  }
  return nullptr;
}

bool IsCaseKey(const std::string& key) {
  return std::ranges::any_of(Operations(), [&](const Operation* op) {
    return std::ranges::count(CaseKeys(*op), key) != 0;
  });
}

}  // namespace

void CheckSpelling(const CLI::App& app,
                   const std::vector<std::string>& arguments) {
  const CLI::App* command = FindCommand(app, arguments);
  if (command == nullptr) return;
  const auto find = [&](const std::string& name) {
    return command->get_option_no_throw(name);
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const CLI::Option* before = find(arguments[i - 1]);
    if (before != nullptr && before->get_items_expected_max() > 0 &&
        arguments[i - 1].starts_with("--")) {
      continue;  // its value
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::string value = "VALUE";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[i + 1];
    }
    if (name.starts_with("--") && find(name) == nullptr) {
      std::string key = name.substr(2);
      std::ranges::replace(key, '-', '_');
      if (!IsCaseKey(key)) continue;
      throw ConfigError(
          fmt::format("{}: {} is a key of the case, not an option; write {}={}",
                      arguments[0], name, key, value));
    }
    if (equals != std::string::npos && find("--" + name) != nullptr) {
      throw ConfigError(fmt::format(
          "{}: {} is an option, not a key of the case; write --{} {}",
          arguments[0], argument, name, value));
    }
  }
}

}  // namespace softmoe::verify
