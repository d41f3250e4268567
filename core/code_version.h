// SPDX-License-Identifier: Apache-2.0
//
// code_version.h - which version of this project a program was built from.
#ifndef SOFTMOE_CORE_CODE_VERSION_H_
#define SOFTMOE_CORE_CODE_VERSION_H_

#include <string>

namespace softmoe {

// Returns the commit, 12 digits, with "+changes" if tracked files differed from
// it; "unknown" in a program that was built outside a git checkout or does not
// link //core:code_version_stamp. Only programs that users run link the stamp,
// because every commit rebuilds it and relinks them.
std::string CodeVersion();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CODE_VERSION_H_
