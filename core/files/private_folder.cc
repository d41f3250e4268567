// SPDX-License-Identifier: Apache-2.0
#include "core/files/private_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "core/errors.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

fs::path UsualParent() {
  std::error_code error;
  const fs::path named = fs::temp_directory_path(error);
  return error ? "/tmp" : named;
}

}  // namespace

PrivateFolder::PrivateFolder() : PrivateFolder(UsualParent()) {}

PrivateFolder::PrivateFolder(const fs::path& parent) {
  std::string name = (parent / "softmoe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw EnvironmentError(
        fmt::format("cannot make a folder like {}: {}; name a folder that can "
                    "be written, or set TMPDIR to one",
                    name, std::strerror(errno)));
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace softmoe
