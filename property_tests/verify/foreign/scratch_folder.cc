// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "core/files/file_error.h"

namespace softmoe::verify {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  std::string name = (parent / "softmoe-verify-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw FileError("write", name, errno);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace softmoe::verify
