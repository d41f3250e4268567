// SPDX-License-Identifier: Apache-2.0
//
// program_test_util.h - runs a program of this repository as a user would.
#ifndef SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_

#include <filesystem>
#include <string>

namespace softmoe {

struct ProgramOutput {
  int exit_code = -1;  // -1: a signal ended it
  std::string text;
};

// Runs the runfile `program` in `folder`. A shell splits `arguments`; "2>&1"
// among them adds stderr to `text`.
ProgramOutput RunTestProgram(const std::string& program,
                             const std::string& arguments,
                             const std::filesystem::path& folder = ".");

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_
