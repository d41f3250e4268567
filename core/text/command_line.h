// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - mistakes on command lines that CLI11 does not refuse.
#ifndef SOFTMOE_CORE_TEXT_COMMAND_LINE_H_
#define SOFTMOE_CORE_TEXT_COMMAND_LINE_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace softmoe {

// "no command 'rnu'; did you mean 'run'?" if the first word of the command line
// is neither an option nor a command of `app`; else "". Names all commands if
// none is near.
std::string UnknownCommand(const CLI::App& app, int argc,
                           const char* const* argv);

// Throws ConfigError if an option that was parsed has an empty value, as that
// of a shell variable that is not set, or another option in its place, which
// `--out= --quiet` means to CLI11. An empty value would else mean the default.
void RequireValues(const CLI::App& app);

// For an option's check(): "" unless an integer begins with a zero too many,
// which makes it octal to CLI11.
std::string RefuseOctal(const std::string& number);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_COMMAND_LINE_H_
