// SPDX-License-Identifier: Apache-2.0
//
// runfiles.h - files that a program brings along (`data` in its BUILD rule).
#ifndef SOFTMOE_CORE_FILES_RUNFILES_H_
#define SOFTMOE_CORE_FILES_RUNFILES_H_

#include <filesystem>
#include <string>

namespace softmoe {

// The place of a file of this repository, given by its path from the root,
// e.g. "golden/paper/paper.h5". Looks where Bazel says ($TEST_SRCDIR,
// $RUNFILES_DIR), then in PROGRAM.runfiles beside the running program, so that
// it also works for `bazel-bin/golden/golden` and under `bazel run`. The
// current folder never counts. Throws EnvironmentError that names every place
// tried if the file is in none of them.
std::filesystem::path RunfilePath(const std::string& path_from_root);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_RUNFILES_H_
