// SPDX-License-Identifier: Apache-2.0
#include "trainer/folder_lock.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/errors.h"
#include "core/file_test_util.h"

namespace softmoe::trainer {
namespace {

TEST(FolderLock, IsHeldOnceAndReleased) {
  const auto folder = FreshFolder("lock");
  auto first = std::make_unique<FolderLock>(folder);
  EXPECT_THROW(FolderLock{folder}, EnvironmentError);
  first.reset();
  EXPECT_NO_THROW(FolderLock{folder});
  EXPECT_TRUE(FilesIn(folder).empty());
}

TEST(FolderLock, AskingLeavesItAsItIs) {
  const auto folder = FreshFolder("asked");
  EXPECT_FALSE(IsLocked(folder));
  {
    const FolderLock lock(folder);
    EXPECT_TRUE(IsLocked(folder));
    EXPECT_TRUE(IsLocked(folder));
  }
  EXPECT_FALSE(IsLocked(folder));
  EXPECT_FALSE(IsLocked(folder / "missing"));
  EXPECT_NO_THROW(FolderLock{folder});
}

TEST(FolderLock, NeedsTheFolder) {
  EXPECT_THROW(FolderLock{FreshFolder("lock") / "missing"}, EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer
