// SPDX-License-Identifier: Apache-2.0
//
// atomic_file.h - files that exist whole or not at all.
//
// The bytes go to a temporary name in the same folder, which is synced and
// renamed at the end, so that a crash, a signal or a full disk leaves the old
// file (or none), never half of the new one.
#ifndef SOFTMOE_CORE_FILES_ATOMIC_FILE_H_
#define SOFTMOE_CORE_FILES_ATOMIC_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe {

class AtomicFile {
 public:
  // Creates the temporary file. If `path` is a link, the file that it names is
  // written, whether it exists or not. Throws EnvironmentError, also if `path`
  // is a device or pipe.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();  // without Commit the temporary file is removed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends bytes (buffered). Throws EnvironmentError, e.g. for a full disk;
  // the file can then only be abandoned.
  void Write(const void* data, size_t size);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // Bytes written so far, including those in the buffer.
  int64_t size() const { return size_; }

  // Syncs the file, renames it and syncs the folder. If it throws
  // EnvironmentError, the temporary file is removed, and the old one at `path`
  // is intact (or, if only the folder could not be synced, replaced by the
  // whole new one).
  void Commit();

  // The open temporary file, for writers with their own I/O (HDF5). Do not mix
  // with Write.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary_path() const { return temporary_; }

 private:
  void Flush();
  [[noreturn]] void Fail(int error);
  void Abandon();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  std::vector<char> buffer_;
};

// Makes the name of a new or renamed file durable. Does nothing if the file
// system cannot sync the folder, or if this user may not list it. Throws
// EnvironmentError.
void SyncFolderOf(const std::filesystem::path& path);

// Replaces the file at `path` with `content`. Throws EnvironmentError.
void WriteFileAtomically(const std::filesystem::path& path,
                         std::string_view content);

// Returns the process that made the temporary file of this name (without
// folder), or 0 if the name is not that of a temporary file.
int64_t TemporaryFileOwner(std::string_view name);

// Removes the temporary files that writers of the file at `path` left when they
// were killed. Call it only while holding the lock under which that file is
// written: a temporary file still in use would be removed, too. Ignores what
// cannot be removed.
void RemoveLeftoversOf(const std::filesystem::path& path);

// Returns the whole content of a file. Throws EnvironmentError if it cannot be
// read, or is a device or a pipe, which may never end.
std::string ReadWholeFile(const std::filesystem::path& path);

// Reads text that people write, such as a configuration; also from a pipe, such
// as a shell's <(COMMAND). Throws EnvironmentError if it cannot be read,
// DataError if it is over 64 MiB.
std::string ReadSmallText(const std::filesystem::path& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_ATOMIC_FILE_H_
