// SPDX-License-Identifier: Apache-2.0
#include "core/files/private_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

TEST(PrivateFolder, IsTheOwnersAloneAndGoesWithItsContent) {
  fs::path path;
  {
    const PrivateFolder folder, other;
    path = folder.path();
    EXPECT_NE(path, other.path());
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    WriteFileAtomically(path / "file", "text");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(PrivateFolder, IsBelowTheParentThatIsNamed) {
  const PrivateFolder parent;
  const PrivateFolder folder(parent.path());
  EXPECT_EQ(folder.path().parent_path(), parent.path());
}

TEST(PrivateFolder, SaysWhereItCannotBeMade) {
  // Not even root can make a folder there.
  ASSERT_EQ(::setenv("TMPDIR", "/proc", 1), 0);
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { const PrivateFolder folder; }),
           "/proc/softmoe-", "set TMPDIR"));
}

}  // namespace
}  // namespace softmoe
