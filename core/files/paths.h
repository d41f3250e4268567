// SPDX-License-Identifier: Apache-2.0
//
// paths.h - where the user's files and our caches are (DESIGN.md, ruling 12).
#ifndef SOFTMOE_CORE_FILES_PATHS_H_
#define SOFTMOE_CORE_FILES_PATHS_H_

#include <cstdint>
#include <filesystem>
#include <string>

namespace softmoe {

// A path as the user typed it: a relative one starts at the folder where
// `bazel run` was called ($BUILD_WORKING_DIRECTORY), else at the current one.
std::filesystem::path UserPath(const std::string& path);

// $XDG_CACHE_HOME/softmoe, or ~/.cache/softmoe: corpora and tokenizers. The
// folder is not created. Throws EnvironmentError if no home is known.
std::filesystem::path CacheFolder();

// Creates `folder` and its parents. Throws EnvironmentError with the remedy.
void MakeFolder(const std::filesystem::path& folder);

// Bytes free for this user on the disk that holds `path` or, where that does
// not exist yet, its nearest existing parent.
int64_t FreeDiskBytes(const std::filesystem::path& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_PATHS_H_
