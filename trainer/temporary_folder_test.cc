// SPDX-License-Identifier: Apache-2.0
#include "trainer/temporary_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/file_test_util.h"

namespace softmoe::trainer {
namespace {

using Names = std::vector<std::string>;

TEST(TemporaryFolder, AppearsAtCommit) {
  const auto parent = FreshFolder("commit");
  TemporaryFolder folder(parent / "sub" / "result");
  WriteFileAtomically(folder.path() / "file", "content");
  EXPECT_FALSE(std::filesystem::exists(parent / "sub" / "result"));
  folder.Commit();
  EXPECT_EQ(ReadWholeFile(parent / "sub" / "result" / "file"), "content");
  EXPECT_EQ(FilesIn(parent / "sub"), (Names{"result"}));
}

TEST(TemporaryFolder, VanishesWithoutCommit) {
  const auto parent = FreshFolder("no_commit");
  {
    TemporaryFolder folder(parent / "result");
    WriteFileAtomically(folder.path() / "file", "content");
  }
  EXPECT_EQ(FilesIn(parent), Names{});
}

TEST(TemporaryFolder, ReplacesWhatIsThere) {
  const auto parent = FreshFolder("replace");
  for (const std::string content : {"old", "new"}) {
    TemporaryFolder folder(parent / "result");
    WriteFileAtomically(folder.path() / content, content);
    folder.Commit();
  }
  EXPECT_EQ(FilesIn(parent), (Names{"result"}));
  EXPECT_EQ(FilesIn(parent / "result"), (Names{"new"}));
}

TEST(TemporaryFolder, ClearsUpAfterTheDeadAndOnlyThem) {
  const auto parent = FreshFolder("leftovers");
  // Process numbers end at 2^22 on Linux.
  std::filesystem::create_directories(parent / ".result.partial-4194999-0");
  std::filesystem::create_directories(parent / ".result.partial-1-0");
  std::filesystem::create_directories(parent / ".other.partial-4194999-0");
  { TemporaryFolder folder(parent / "result"); }
  EXPECT_EQ(FilesIn(parent),
            (Names{".other.partial-4194999-0", ".result.partial-1-0"}));
}

}  // namespace
}  // namespace softmoe::trainer
