// SPDX-License-Identifier: Apache-2.0
//
// spelling.h - enforces one syntax: the parts of a case are words KEY=VALUE,
// and everything else is an option.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_SPELLING_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_SPELLING_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace softmoe::verify {

// The positional argument of commands that read the words of a case.
inline constexpr char kCaseWords[] = "case";

// Throws ConfigError, with the right spelling, for a key of the case that is
// given as an option, and for an option that is given as a word. `arguments`
// begin with the name of the command.
void CheckSpelling(const CLI::App& app,
                   const std::vector<std::string>& arguments);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_SPELLING_H_
