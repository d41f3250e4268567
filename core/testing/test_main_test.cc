// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "core/process/process.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Otherwise its memory would be lost until the machine starts again.
TEST(TestMain, RemovesTheFolderInMemoryOfATestThatWasKilled) {
  const char* const own = std::getenv("TEST_TMPDIR");
  if (own == nullptr || !std::string_view(own).starts_with("/dev/shm/")) {
    GTEST_SKIP() << "too little memory is lent as a file system";
  }
  // `own` lies in the folder in memory of this process.
  const std::string left = fs::path(own).parent_path().string() + "-killed";
  // Appears whole, since every test program that starts meanwhile removes it.
  const fs::path made = fs::path(own) / "made";
  fs::create_directories(made / "with" / "files");
  fs::rename(made, left);

  ProcessOptions options;  // this program, without a test to run
  options.arguments = {fs::read_symlink("/proc/self/exe").string(),
                       "--gtest_filter=-*"};
  options.environment.emplace();
  Process next(options);
  next.ListenToEnd([](Process::Stream, std::string_view) {});
  EXPECT_EQ(next.ExitStatus(), 0);
  for (int i = 0; i < 1000 && fs::exists(left); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(own));
}

}  // namespace
}  // namespace softmoe
