// SPDX-License-Identifier: Apache-2.0
#include "core/text/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe {
namespace {

void RequireValuesOf(const CLI::App& group, const CLI::App& app) {
  for (const CLI::Option* option : group.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    for (const std::string& value : option->results()) {
      const std::string name = option->get_name();
      if (value.empty()) {
        throw ConfigError(fmt::format(
            "{}: its value is empty; give one, or leave the option out", name));
      }
      if (value.starts_with('-') && app.get_option_no_throw(value) != nullptr) {
        throw ConfigError(
            fmt::format("{}: its value is {}, which is an option; give one, or "
                        "leave {} out",
                        name, value, name));
      }
    }
  }
  // Groups of options are nameless commands.
  for (const CLI::App* part : group.get_subcommands(nullptr)) {
    RequireValuesOf(*part, part->get_name().empty() ? app : *part);
  }
}

}  // namespace

std::string UnknownCommand(const CLI::App& app, int argc,
                           const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  const std::string word = argv[1];
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
  }
  if (std::ranges::count(commands, word) != 0) return "";
  return fmt::format("no command '{}'; {}", word, Suggestion(word, commands));
}

void RequireValues(const CLI::App& app) { RequireValuesOf(app, app); }

std::string RefuseOctal(const std::string& number) {
  const size_t zero = number.find_first_not_of(" +-");
  if (zero == number.npos || number[zero] != '0') return "";
  if (zero + 1 == number.size() || number[zero + 1] < '0' ||
      number[zero + 1] > '9') {
    return "";
  }
  return fmt::format(
      "{} begins with 0, which would make it octal; leave that zero out",
      number);
}

}  // namespace softmoe
