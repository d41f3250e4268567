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

PrivateFolder::PrivateFolder() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  std::string name = (parent / "softmoe-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw EnvironmentError(
        fmt::format("cannot make a folder like {}: {}; set TMPDIR to a folder "
                    "that can be written",
                    name, std::strerror(errno)));
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace softmoe
