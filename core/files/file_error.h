// SPDX-License-Identifier: Apache-2.0
//
// file_error.h - an errno about a file as an EnvironmentError with a remedy;
// writing all bytes of a text; and checks of what a path names.
#ifndef SOFTMOE_CORE_FILES_FILE_ERROR_H_
#define SOFTMOE_CORE_FILES_FILE_ERROR_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/errors.h"

namespace softmoe {

// Returns "cannot ACTION 'PATH': REASON; REMEDY". `action` is a verb ("write",
// "read"); `error`, an errno value, decides the remedy.
EnvironmentError FileError(const std::string& action,
                           const std::filesystem::path& path, int error);

// Writes all bytes, at `offset` or, if that is -1, at the file's position.
// Returns 0, or the errno that says why not: ENOSPC if a write takes no bytes.
int WriteAll(int file, std::string_view bytes, int64_t offset = -1);

// Whether `path` still names the open file or folder, which others may move.
bool StillNames(const std::filesystem::path& path, int file);

// Throws EnvironmentError if `path` exists and is not a regular file: a file
// written whole would replace a folder or device, and a pipe cannot hold one.
void RequireRegularOrAbsent(const std::filesystem::path& path);

// Throws EnvironmentError unless `path` is a regular file, or a link to one,
// which can be read twice and in any order. Devices and pipes may never end, or
// give their bytes only once.
void RequireRegular(const std::filesystem::path& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_FILE_ERROR_H_
