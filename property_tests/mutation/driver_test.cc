// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::mutation {
namespace {

class BuildFolderTest : public ::testing::Test {
 protected:
  BuildFolderTest() {
    if (const char* cache = std::getenv(kCache)) before_ = cache;
    ::setenv(kCache, FreshFolder("cache").c_str(), 1);
  }
  ~BuildFolderTest() override {
    if (before_) {
      ::setenv(kCache, before_->c_str(), 1);
    } else {
      ::unsetenv(kCache);
    }
  }

  static void Leave(const std::filesystem::path& file) {
    MakeFolder(file.parent_path());
    WritePlain(file, "");
  }

 private:
  static constexpr char kCache[] = "XDG_CACHE_HOME";
  std::optional<std::string> before_;
};

TEST_F(BuildFolderTest, LosesTheScratchOfADriverThatWasKilled) {
  std::filesystem::path hits, object;
  {
    const BuildFolder folder;
    hits = folder.scratch() / "7-1/hits";
    object = folder.path() / "objects/a.o";
    Leave(hits);
    Leave(object);
  }
  const BuildFolder folder;
  EXPECT_FALSE(std::filesystem::exists(hits));
  EXPECT_TRUE(std::filesystem::exists(object));
}

TEST_F(BuildFolderTest, IsForOneRunAtATime) {
  const BuildFolder folder;
  const std::filesystem::path hits = folder.scratch() / "7-1/hits";
  Leave(hits);
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kEnvironment, [] { const BuildFolder other; }),
           "another `verify mutate` is running"));
  EXPECT_TRUE(std::filesystem::exists(hits));
}

// A driver says something again before it looks for the signal.
TEST(Say, DoesNotWaitForAReaderAfterASignal) {
  std::fflush(stdout);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const auto size = static_cast<size_t>(fcntl(ends[1], F_SETPIPE_SZ, 4096));
  const std::string full(size, ' ');
  ASSERT_EQ(write(ends[1], full.data(), size), std::ssize(full));
  const int out = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  {
    const StopSignal stop;
    raise(SIGINT);
    Say("[1/2] killed");
  }
  dup2(out, STDOUT_FILENO);
  std::string read_back(2 * size, '\0');
  EXPECT_EQ(read(ends[0], read_back.data(), read_back.size()),
            std::ssize(full));
  for (const int file : {ends[0], ends[1], out}) close(file);
}

}  // namespace
}  // namespace softmoe::mutation
