// SPDX-License-Identifier: Apache-2.0
//
// temporary_folder.h - a folder that appears under its name complete or not at
// all.
#ifndef SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_
#define SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_

#include <filesystem>

namespace softmoe {

// A fresh folder beside `target` to fill. Folders that other processes were
// filling when they died are removed first: a live process holds a lock on its
// folder, which works also across containers and machines, where process
// numbers say nothing.
class TemporaryFolder {
 public:
  // Throws EnvironmentError.
  explicit TemporaryFolder(std::filesystem::path target);
  ~TemporaryFolder();  // removes it with its content, if it is still there
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Gives the folder its name, replacing what is there. Throws
  // EnvironmentError.
  void Commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  int lock_ = -1;  // descriptor of the folder
};

// Removes the folders that TemporaryFolders of any target left in `parent` when
// their processes died; those in use hold their locks and stay. Only for
// folders that are ours alone. Ignores what cannot be removed.
void RemoveLeftoverFolders(const std::filesystem::path& parent);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_
