// SPDX-License-Identifier: Apache-2.0
#include "core/files/runfiles.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

constexpr const char* kData = "core/HDF5_ENVELOPE.md";  // data of this test

TEST(RunfilePath, FindsTheDataOfTheRule) {
  EXPECT_TRUE(Says(ReadWholeFile(RunfilePath(kData)), "# Our HDF5 files"));
}

TEST(RunfilePath, FindsItBesideTheProgramWithoutBazelsVariables) {
  unsetenv("TEST_SRCDIR");
  unsetenv("RUNFILES_DIR");
  EXPECT_TRUE(Says(ReadWholeFile(RunfilePath(kData)), "# Our HDF5 files"));
}

TEST(RunfilePath, PassesOverFoldersThatLackTheFile) {
  setenv("TEST_SRCDIR", "/nonexistent", 1);
  EXPECT_TRUE(std::filesystem::exists(RunfilePath(kData)));
}

TEST(RunfilePath, SaysWhereItLookedAndWhatToDo) {
  setenv("TEST_SRCDIR", "/nonexistent", 1);
  EXPECT_TRUE(Says(
      MessageOf<EnvironmentError>([&] { RunfilePath("core/no_such_file"); }),
      "'/nonexistent/softmoe/core/no_such_file'", "./bazelw run"));
  EXPECT_THROW(RunfilePath("/etc/passwd"), InternalError);
}

}  // namespace
}  // namespace softmoe
