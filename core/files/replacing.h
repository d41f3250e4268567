// SPDX-License-Identifier: Apache-2.0
//
// replacing.h - keeps an output file that a user names from replacing a file
// that the same command uses.
#ifndef SOFTMOE_CORE_FILES_REPLACING_H_
#define SOFTMOE_CORE_FILES_REPLACING_H_

#include <filesystem>
#include <string>
#include <vector>

namespace softmoe {

// Whether both paths name the same file, possibly through links, or would if it
// existed.
bool IsSameFile(const std::filesystem::path& a, const std::filesystem::path& b);

// Throws ConfigError if `output`, which the user gives with `option`, is one of
// the files `used` by the same command. Empty paths do not count.
void RefuseReplacing(const std::string& option,
                     const std::filesystem::path& output,
                     const std::vector<std::filesystem::path>& used);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_REPLACING_H_
