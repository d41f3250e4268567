// SPDX-License-Identifier: Apache-2.0
//
// exec_target.h - a subcommand that is a separate program, because it needs
// code that the program called by the user must not contain or should not have
// to build.
#ifndef SOFTMOE_CORE_PROCESS_EXEC_TARGET_H_
#define SOFTMOE_CORE_PROCESS_EXEC_TARGET_H_

#include <string>
#include <vector>

namespace softmoe {

// Replaces this process with `bazelw run TARGET -- ARGUMENTS`, which builds
// TARGET first, in the user's current folder. `typed`, like "//:verify --
// mutate", is what the user called. Throws EnvironmentError where there is no
// workspace to build in.
[[noreturn]] void ExecTarget(const std::string& typed,
                             const std::string& target,
                             const std::vector<std::string>& arguments);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_EXEC_TARGET_H_
