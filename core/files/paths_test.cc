// SPDX-License-Identifier: Apache-2.0
#include "core/files/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

TEST(UserPath, StartsWhereTheUserStands) {
  setenv("BUILD_WORKING_DIRECTORY", "/home/ada/work", 1);
  EXPECT_EQ(UserPath("runs/a"), "/home/ada/work/runs/a");
  EXPECT_EQ(UserPath("../b"), "/home/ada/b");
  EXPECT_EQ(UserPath("/tmp/c"), "/tmp/c");
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(UserPath("runs/a"), fs::current_path() / "runs/a");
  EXPECT_THROW(UserPath(""), ConfigError);
}

TEST(UserPath, TheParentOfALinkIsThatOfItsTarget) {
  const fs::path folder = FreshFolder("parents");
  fs::create_directories(folder / "data/runs");
  fs::create_directory_symlink(folder / "data/runs", folder / "link");
  for (const char* end : {"link/../a", "link/./../a", "data/../link/../a"}) {
    EXPECT_EQ(fs::weakly_canonical(UserPath(folder / end)),
              fs::weakly_canonical(folder / "data/a"))
        << end;
  }
  EXPECT_EQ(UserPath(folder / "link/deeper/../a"), folder / "link/a");
}

TEST(CacheFolder, FollowsTheXdgRules) {
  setenv("HOME", "/home/ada", 1);
  setenv("XDG_CACHE_HOME", "/var/cache/ada", 1);
  EXPECT_EQ(CacheFolder(), "/var/cache/ada/softmoe");
  setenv("XDG_CACHE_HOME", "relative/is/ignored", 1);
  EXPECT_EQ(CacheFolder(), "/home/ada/.cache/softmoe");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(CacheFolder(), "/home/ada/.cache/softmoe");
  unsetenv("HOME");
  EXPECT_THROW(CacheFolder(), EnvironmentError);
}

TEST(MakeFolder, CreatesParentsAndAcceptsWhatExists) {
  const fs::path folder = fs::path(::testing::TempDir()) / "made/by/paths_test";
  MakeFolder(folder);
  MakeFolder(folder);
  EXPECT_TRUE(fs::is_directory(folder));
}

TEST(MakeFolder, AFileInTheWayIsAnEnvironmentErrorThatNamesIt) {
  const fs::path file = fs::path(::testing::TempDir()) / "plain_file";
  std::ofstream(file) << "x";
  for (const fs::path& folder : {file, file / "below"}) {
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { MakeFolder(folder); }),
                     folder.string()))
        << folder;
  }
}

TEST(FreeDiskBytes, WorksForPathsThatDoNotExistYet) {
  const fs::path here(::testing::TempDir());
  EXPECT_GT(FreeDiskBytes(here), 0);
  EXPECT_GT(FreeDiskBytes(here / "not/yet/there"), 0);
}

constexpr const char* kData = "core/HDF5_ENVELOPE.md";  // data of this test

TEST(RunfilePath, FindsTheDataOfTheRule) {
  EXPECT_NE(ReadWholeFile(RunfilePath(kData)).find("# Our HDF5 files"),
            std::string::npos);
}

TEST(RunfilePath, FindsItBesideTheProgramWithoutBazelsVariables) {
  unsetenv("TEST_SRCDIR");
  unsetenv("RUNFILES_DIR");
  EXPECT_NE(ReadWholeFile(RunfilePath(kData)).find("# Our HDF5 files"),
            std::string::npos);
}

TEST(RunfilePath, PassesOverFoldersThatLackTheFile) {
  setenv("TEST_SRCDIR", "/nonexistent", 1);
  EXPECT_TRUE(std::filesystem::exists(RunfilePath(kData)));
}

TEST(RunfilePath, SaysWhereItLookedAndWhatToDo) {
  setenv("TEST_SRCDIR", "/nonexistent", 1);
  try {
    RunfilePath("core/no_such_file");
    FAIL() << "a missing file was found";
  } catch (const EnvironmentError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'/nonexistent/softmoe/core/no_such_file'"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("./bazelw run"), std::string::npos) << message;
  }
  EXPECT_THROW(RunfilePath("/etc/passwd"), InternalError);
}

}  // namespace
}  // namespace softmoe
