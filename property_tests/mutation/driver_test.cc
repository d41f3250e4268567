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
#include "core/testing/program_test_util.h"

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

// Before anything is built.
TEST(Mutate, RefusesWhatCannotBeMeant) {
  const auto run = [](const std::string& arguments) {
    return RunTestProgram("property_tests/mutation/mutate",
                          arguments + " 2>&1");
  };
  const ProgramResult area = run("--list --area nowhere");
  EXPECT_TRUE(EndedWith(area, 2, "unknown area 'nowhere'"));
  EXPECT_EQ(Count(area.output, "'canary'"), 1) << area.output;
  EXPECT_TRUE(EndedWith(run("--seed 6"), 2, "--seed, ", "add --sampled N"));
  EXPECT_TRUE(EndedWith(run("--output --area canary"), 2, "with --mutant"));
  EXPECT_TRUE(EndedWith(run("--sampled 0100"), 2, "0100 begins with 0"));
  const ProgramResult log = run("--mutant canary.gross --log /dev/null/absent");
  EXPECT_TRUE(EndedWith(log, 5, "/dev/null/absent"));
  EXPECT_EQ(Count(log.output, "asking Bazel"), 0) << log.output;
}

}  // namespace
}  // namespace softmoe::mutation
