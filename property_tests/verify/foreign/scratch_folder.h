// SPDX-License-Identifier: Apache-2.0
//
// scratch_folder.h - a folder of this process alone, which is removed with the
// object.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SCRATCH_FOLDER_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SCRATCH_FOLDER_H_

#include <filesystem>

namespace softmoe::verify {

class ScratchFolder {
 public:
  // Made below $TMPDIR, or /tmp. Throws EnvironmentError.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SCRATCH_FOLDER_H_
