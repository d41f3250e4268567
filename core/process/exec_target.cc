// SPDX-License-Identifier: Apache-2.0
#include "core/process/exec_target.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/errors.h"

namespace softmoe {

void ExecTarget(const std::string& typed, const std::string& target,
                const std::vector<std::string>& arguments) {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    throw EnvironmentError("this is done by " + target +
                           ", which is built when it is wanted, and needs to "
                           "know where the sources are: start it as ./bazelw "
                           "run " +
                           typed);
  }
  std::vector<std::string> words = {std::string(workspace) + "/bazelw", "run",
                                    target, "--"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // bazelw passes on the user's current folder.
  const char* standing = std::getenv("BUILD_WORKING_DIRECTORY");
  if (::chdir(standing == nullptr ? workspace : standing) == 0) {
    std::fflush(nullptr);
    ::execv(pointers[0], pointers.data());
  }
  throw EnvironmentError("cannot start " + words[0] + ": " +
                         std::strerror(errno));
}

}  // namespace softmoe
