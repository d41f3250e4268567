// SPDX-License-Identifier: Apache-2.0
//
// code_version.h - which version of this project a program was built from.
#ifndef SOFTMOE_CORE_CODE_VERSION_H_
#define SOFTMOE_CORE_CODE_VERSION_H_

#include <string>

namespace softmoe {

// The commit, 12 digits, with "+changes" if tracked files differed from it;
// "unknown" in a program that was built outside a git checkout or that does not
// link //core:code_version_stamp. Only programs that users run link the stamp:
// it is rebuilt, and they are relinked, at every commit.
std::string CodeVersion();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CODE_VERSION_H_
