// SPDX-License-Identifier: Apache-2.0
#include "core/files/replacing.h"

#include <fmt/core.h>

#include <system_error>

#include "core/errors.h"

namespace softmoe {

namespace fs = std::filesystem;

namespace {

// Returns the path, without links or a final slash, that the file `path` has
// once it exists.
fs::path Named(fs::path path, std::error_code& unreadable) {
  path = fs::absolute(path);
  // weakly_canonical keeps a link to a file that does not exist.
  constexpr int kMostLinks = 40;  // as the kernel follows
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, unreadable);
       ++links) {
    path = path.parent_path() / fs::read_symlink(path, unreadable);
  }
  path = fs::weakly_canonical(path, unreadable);
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

bool IsSameFile(const fs::path& a, const fs::path& b) {
  std::error_code missing;  // then their names decide
  if (fs::equivalent(a, b, missing)) return true;
  std::error_code unreadable;  // then opening reports it
  const fs::path named_a = Named(a, unreadable);
  const fs::path named_b = Named(b, unreadable);
  return !unreadable && named_a == named_b;
}

void RefuseReplacing(const std::string& option, const fs::path& output,
                     const std::vector<fs::path>& used) {
  if (output.empty()) return;
  for (const fs::path& file : used) {
    if (file.empty() || !IsSameFile(output, file)) continue;
    throw ConfigError(fmt::format(
        "{} {}: the same command also reads or writes {}; name another file",
        option, output.string(), file.string()));
  }
}

}  // namespace softmoe
