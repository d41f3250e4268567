// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - what programs with commands say about an unknown command.
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

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_COMMAND_LINE_H_
