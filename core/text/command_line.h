// SPDX-License-Identifier: Apache-2.0
//
// command_line.h - what programs with commands say about an unknown command and
// an option without a value.
#ifndef SOFTMOE_CORE_TEXT_COMMAND_LINE_H_
#define SOFTMOE_CORE_TEXT_COMMAND_LINE_H_

#include <set>
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

// "--out is empty; ..." if an option of `command`, which has been parsed, was
// given an empty text, as by a variable that a script has not set: the program
// would do as without it. "" if none was, but for those in `may_be`.
std::string EmptyOption(const CLI::App& command,
                        const std::set<std::string>& may_be = {});

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_COMMAND_LINE_H_
