// SPDX-License-Identifier: Apache-2.0
//
// paths.h - where files are: the user's files, our caches (DESIGN.md, ruling
// 12) and the files that a program brings along (`data` in its BUILD rule).
#ifndef SOFTMOE_CORE_FILES_PATHS_H_
#define SOFTMOE_CORE_FILES_PATHS_H_

#include <cstdint>
#include <filesystem>
#include <string>

namespace softmoe {

// Returns the path that the user typed: a relative one starts at the folder
// where `bazel run` was called ($BUILD_WORKING_DIRECTORY), else at the current
// folder. The result has no "." or "..", unless a ".." follows a symbolic link.
// Throws ConfigError if `path` is empty.
std::filesystem::path UserPath(const std::string& path);

// Returns $XDG_CACHE_HOME/softmoe, or ~/.cache/softmoe, which holds corpora and
// tokenizers. Does not create it. Throws EnvironmentError if no home is known.
std::filesystem::path CacheFolder();

// Creates `folder` and its parents. Throws EnvironmentError with the remedy.
void MakeFolder(const std::filesystem::path& folder);

// Returns the bytes free for this user on the disk that holds `path` or, if
// that does not exist yet, its nearest existing parent.
int64_t FreeDiskBytes(const std::filesystem::path& path);

// Returns the place of a file of this repository, given by its path from the
// root, e.g. "golden/paper/paper.h5". Looks where Bazel says ($TEST_SRCDIR,
// $RUNFILES_DIR), then in PROGRAM.runfiles beside the running program, so it
// also works for `bazel-bin/golden/golden` and under `bazel run`. Never looks
// in the current folder. Throws an EnvironmentError that names every place
// tried if the file is in none of them.
std::filesystem::path RunfilePath(const std::string& path_from_root);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_PATHS_H_
