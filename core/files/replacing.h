// SPDX-License-Identifier: Apache-2.0
//
// replacing.h - what a file that a user names for output must not replace: one
// that the same command uses, which would be lost.
#ifndef SOFTMOE_CORE_FILES_REPLACING_H_
#define SOFTMOE_CORE_FILES_REPLACING_H_

#include <filesystem>
#include <string>
#include <vector>

namespace softmoe {

// Whether both paths name the same file, also by way of links, or would if it
// were there.
bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b);

// Throws ConfigError if `output`, which the user gives with `option`, is one of
// `used`: files that the same command reads, or writes, too. Empty paths are
// none.
void RefuseReplacing(const std::string& option,
                     const std::filesystem::path& output,
                     const std::vector<std::filesystem::path>& used);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_REPLACING_H_
