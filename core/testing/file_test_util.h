// SPDX-License-Identifier: Apache-2.0
//
// file_test_util.h - what the tests of file formats share: fresh folders, files
// without syncs, and a disk that is full after so many bytes.
#ifndef SOFTMOE_CORE_TESTING_FILE_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_FILE_TEST_UTIL_H_

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe {

// Makes an empty folder of this name in the test's temporary folder.
std::filesystem::path FreshFolder(const std::string& name);

// Writes a file without the syncs of AtomicFile: for tests that write many.
void WritePlain(const std::filesystem::path& path, std::string_view content);

// Returns the names of all files in `folder`, also hidden ones, sorted.
std::vector<std::string> FilesIn(const std::filesystem::path& folder);

// During its lifetime no file of this process can grow beyond `bytes`. Writes
// then fail with EFBIG, as they fail with ENOSPC on a full disk (RLIMIT_FSIZE,
// SIGXFSZ ignored).
class FullDisk {
 public:
  explicit FullDisk(int64_t bytes);
  ~FullDisk();

 private:
  rlimit old_limit_;
  void (*old_handler_)(int);
};

// Whether a program can start under a limit on file sizes. One with TSan
// cannot: its runtime maps a large file before main.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kBeginsOnFullDisk = false;
#else
inline constexpr bool kBeginsOnFullDisk = true;
#endif

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_FILE_TEST_UTIL_H_
