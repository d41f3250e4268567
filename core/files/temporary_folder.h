// SPDX-License-Identifier: Apache-2.0
//
// temporary_folder.h - temporary folders: one that appears under its name
// complete or not at all, and one that belongs to this process alone.
#ifndef SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_
#define SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <memory>

namespace softmoe {

class FolderLock;

// $TMPDIR or, if that is no folder, as once a job of a cluster has ended, /tmp.
std::filesystem::path TemporaryParent();

// A fresh folder to fill, in a hidden one beside `target`. Hidden folders that
// processes left when they died are removed first. A live process, perhaps in a
// container or on another machine, holds the FolderLock of its hidden folder.
// If it cannot be asked (folder_lock.h), the folder stays.
class TemporaryFolder {
 public:
  // Throws EnvironmentError.
  explicit TemporaryFolder(std::filesystem::path target);
  ~TemporaryFolder();  // removes it with its content, if it is still there
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Gives the folder its name, replacing what is there. If several processes do
  // so at once, the folder of one of them is left. If this throws
  // EnvironmentError, what was there is unchanged.
  void Commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  std::unique_ptr<FolderLock> lock_;  // on its parent; none once that is gone
};

// Removes the folders that TemporaryFolders of any target left in `parent` when
// their processes died; folders in use are locked and stay. `parent` must be
// ours alone. Ignores what cannot be removed.
void RemoveLeftoverFolders(const std::filesystem::path& parent);

// A folder that belongs to this process alone and is removed with the object.
class PrivateFolder {
 public:
  // Makes the folder in TemporaryParent(). Throws EnvironmentError.
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_TEMPORARY_FOLDER_H_
