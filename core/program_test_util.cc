// SPDX-License-Identifier: Apache-2.0
#include "core/program_test_util.h"

#include <stdio.h>
#include <sys/wait.h>

#include "core/errors.h"
#include "core/runfiles.h"

namespace softmoe {

ProgramOutput RunTestProgram(const std::string& program,
                             const std::string& arguments,
                             const std::filesystem::path& folder) {
  const auto path = std::filesystem::absolute(RunfilePath(program));
  const std::string command =
      "cd '" + folder.string() + "' && '" + path.string() + "' " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  SOFTMOE_CHECK(pipe != nullptr) << command;
  ProgramOutput output;
  char part[4096];
  for (size_t count; (count = fread(part, 1, sizeof part, pipe)) > 0;) {
    output.text.append(part, count);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  return output;
}

}  // namespace softmoe
