// SPDX-License-Identifier: Apache-2.0
//
// private_folder.h - a folder of this process alone, which is removed with the
// object.
#ifndef SOFTMOE_CORE_FILES_PRIVATE_FOLDER_H_
#define SOFTMOE_CORE_FILES_PRIVATE_FOLDER_H_

#include <filesystem>

namespace softmoe {

class PrivateFolder {
 public:
  // Makes the folder below `parent`, or else below $TMPDIR or /tmp. Throws
  // EnvironmentError.
  PrivateFolder();
  explicit PrivateFolder(const std::filesystem::path& parent);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_PRIVATE_FOLDER_H_
