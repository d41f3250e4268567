// SPDX-License-Identifier: Apache-2.0
#include "core/text/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "core/text/suggestion.h"

namespace softmoe {

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

std::string EmptyOption(const CLI::App& command,
                        const std::set<std::string>& may_be) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!name.starts_with("--") || may_be.contains(name)) continue;
    if (std::ranges::count(option->results(), "") == 0) continue;
    return name + " is empty; give it a value, or leave it out";
  }
  return "";
}

}  // namespace softmoe
