// SPDX-License-Identifier: Apache-2.0
//
// subprocess.h - runs another program, without a shell.
#ifndef SOFTMOE_CORE_PROCESS_SUBPROCESS_H_
#define SOFTMOE_CORE_PROCESS_SUBPROCESS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace softmoe {

struct ProgramResult {
  int exit_status = 0;  // 128 + signal if a signal ended it
  std::string output;   // stdout and stderr together, in English (LC_ALL=C)
};

// Runs `arguments` (the first is the program, found in PATH) in `folder`,
// with an empty stdin, and waits for its end. Output beyond 1 MiB is dropped.
// Throws EnvironmentError if the program cannot be started.
ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder);

// Whether `program` is in PATH.
bool HaveProgram(const std::string& program);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_SUBPROCESS_H_
