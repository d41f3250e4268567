// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/driver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"
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

}  // namespace
}  // namespace softmoe::mutation
