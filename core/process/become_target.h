// SPDX-License-Identifier: Apache-2.0
//
// become_target.h - a subcommand that is a program of its own: it needs what
// the program that the user called must not contain, or should not wait for.
#ifndef SOFTMOE_CORE_PROCESS_BECOME_TARGET_H_
#define SOFTMOE_CORE_PROCESS_BECOME_TARGET_H_

#include <string>
#include <vector>

namespace softmoe {

// Becomes `bazelw run TARGET -- ARGUMENTS`, which builds it first, in the
// folder where the user stands. `typed`, like "//:verify -- mutate", is what he
// called. Throws EnvironmentError where there is no workspace to build in.
[[noreturn]] void BecomeTarget(const std::string& typed,
                               const std::string& target,
                               const std::vector<std::string>& arguments);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_BECOME_TARGET_H_
