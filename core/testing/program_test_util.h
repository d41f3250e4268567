// SPDX-License-Identifier: Apache-2.0
//
// program_test_util.h - runs a program of this repository as a user would.
#ifndef SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_

#include <filesystem>
#include <string>

#include "core/process/process.h"

namespace softmoe {

// Runs the runfile `program` in `folder`. A shell splits `arguments`; "2>&1"
// among them adds stderr to the output.
ProgramResult RunTestProgram(const std::string& program,
                             const std::string& arguments,
                             const std::filesystem::path& folder = ".");

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_PROGRAM_TEST_UTIL_H_
