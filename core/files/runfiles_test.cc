// SPDX-License-Identifier: Apache-2.0
#include "core/files/runfiles.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"

namespace softmoe {
namespace {

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
