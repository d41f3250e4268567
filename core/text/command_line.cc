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

}  // namespace softmoe
