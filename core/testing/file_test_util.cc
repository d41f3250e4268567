// SPDX-License-Identifier: Apache-2.0
#include "core/testing/file_test_util.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/errors.h"

namespace softmoe {

namespace fs = std::filesystem;

fs::path FreshFolder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void WritePlain(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::vector<std::string> FilesIn(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

FullDisk::FullDisk(int64_t bytes) : old_handler_(signal(SIGXFSZ, SIG_IGN)) {
  SOFTMOE_CHECK(getrlimit(RLIMIT_FSIZE, &old_limit_) == 0);
  rlimit limit = old_limit_;
  limit.rlim_cur = static_cast<rlim_t>(bytes);
  SOFTMOE_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

FullDisk::~FullDisk() {
  setrlimit(RLIMIT_FSIZE, &old_limit_);
  signal(SIGXFSZ, old_handler_);
}

}  // namespace softmoe
