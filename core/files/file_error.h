// SPDX-License-Identifier: Apache-2.0
//
// file_error.h - an errno about a file as an EnvironmentError with a remedy,
// and what is asked of an open file.
#ifndef SOFTMOE_CORE_FILES_FILE_ERROR_H_
#define SOFTMOE_CORE_FILES_FILE_ERROR_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/errors.h"

namespace softmoe {

// "cannot ACTION 'PATH': REASON; REMEDY". `action` is a verb ("write", "read");
// the remedy is chosen by `error`, an errno value.
EnvironmentError FileError(const std::string& action,
                           const std::filesystem::path& path, int error);

// Writes all bytes, at `offset` or (-1) where the file stands. Returns 0, or
// the errno that says why not; a write of nothing is ENOSPC.
int WriteAll(int file, std::string_view bytes, int64_t offset = -1);

// Whether `path` still names the open file or folder: others move or delete.
bool StillNames(const std::filesystem::path& path, int file);

// Throws EnvironmentError if `path` exists and is not a regular file: a file
// written whole would replace a folder or device, and a pipe cannot hold one.
void RequireRegularOrAbsent(const std::filesystem::path& path);

// Throws EnvironmentError unless `path` is a regular file, or a link to one, so
// that it can be read twice, or in any order. Devices and pipes may never end,
// or give their bytes only once.
void RequireRegular(const std::filesystem::path& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_FILE_ERROR_H_
