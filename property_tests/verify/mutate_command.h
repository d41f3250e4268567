// SPDX-License-Identifier: Apache-2.0
//
// mutate_command.h - `verify mutate`, which is a program of its own.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_MUTATE_COMMAND_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_MUTATE_COMMAND_H_

#include <string>
#include <vector>

namespace softmoe::verify {

// Becomes `bazelw run //property_tests/mutation:mutate -- ARGUMENTS`: tests
// with mutants in them are built when they are wanted, not with every build of
// verify. Throws EnvironmentError where there is no workspace to build in.
[[noreturn]] void BecomeMutate(const std::vector<std::string>& arguments);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_MUTATE_COMMAND_H_
