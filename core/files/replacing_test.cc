// SPDX-License-Identifier: Apache-2.0
#include "core/files/replacing.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

TEST(IsSameFile, ByWhateverName) {
  const fs::path folder = FreshFolder("same_file");
  fs::create_directories(folder / "real/inner");
  fs::create_directory_symlink(folder / "real", folder / "link");
  WriteFileAtomically(folder / "real/a", "a");
  WriteFileAtomically(folder / "real/b", "a");
  fs::create_symlink("a", folder / "real/to_a");
  const fs::path a = folder / "real/a";
  EXPECT_TRUE(IsSameFile(a, a));
  EXPECT_TRUE(IsSameFile(a, folder / "real/inner/../a"));
  EXPECT_TRUE(IsSameFile(folder / "link/a", a));
  EXPECT_TRUE(IsSameFile(folder / "real/to_a", a));
  EXPECT_FALSE(IsSameFile(a, folder / "real/b"));
  EXPECT_FALSE(IsSameFile(a, folder / "real/none"));
}

TEST(IsSameFile, BeforeItIsThere) {
  const fs::path folder = FreshFolder("same_file_later");
  fs::create_directories(folder / "real");
  fs::create_directory_symlink(folder / "real", folder / "link");
  EXPECT_TRUE(IsSameFile(folder / "real/x", folder / "link/./x"));
  EXPECT_TRUE(IsSameFile(folder / "none/x", folder / "none/../none/x"));
  EXPECT_FALSE(IsSameFile(folder / "real/x", folder / "real/y"));
  EXPECT_TRUE(IsSameFile("x", fs::current_path() / "x"));
  EXPECT_TRUE(IsSameFile(folder / "none/", folder / "none"));
  fs::create_symlink("real/x", folder / "to_x");
  fs::create_symlink("to_x", folder / "to_to_x");
  EXPECT_TRUE(IsSameFile(folder / "to_to_x", folder / "real/x"));
  EXPECT_FALSE(IsSameFile(folder / "to_to_x", folder / "real/y"));
}

TEST(RefuseReplacing, NamesTheOptionAndBothFiles) {
  const fs::path folder = FreshFolder("replacing");
  WriteFileAtomically(folder / "read", "bytes");
  fs::create_symlink("read", folder / "link");
  const std::string message = MessageOf<ConfigError>([&] {
    RefuseReplacing("--json", folder / "link", {"", "other", folder / "read"});
  });
  EXPECT_TRUE(Says(message, "--json " + (folder / "link").string() + ": ",
                   (folder / "read").string() + "; name another file"));
  EXPECT_NO_THROW(
      RefuseReplacing("--json", folder / "new", {folder / "read", ""}));
  EXPECT_NO_THROW(RefuseReplacing("--json", "", {folder / "read", ""}));
}

}  // namespace
}  // namespace softmoe
