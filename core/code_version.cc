// SPDX-License-Identifier: Apache-2.0
#include "core/code_version.h"

namespace softmoe {

// //core:code_version_stamp has the strong definition.
__attribute__((weak)) const char* StampedCommit() { return ""; }

std::string CodeVersion() {
  const std::string commit = StampedCommit();
  return commit.empty() ? "unknown" : commit;
}

}  // namespace softmoe
