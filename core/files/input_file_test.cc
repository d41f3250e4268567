// SPDX-License-Identifier: Apache-2.0
#include "core/files/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

std::string Read(const InputFile& file, int64_t begin, int64_t count) {
  std::string bytes(static_cast<size_t>(count), 'x');
  file.Read(begin, count, bytes.data());
  return bytes;
}

TEST(InputFile, ReadsAnyPart) {
  const fs::path path = FreshFolder("input") / "file";
  WriteFileAtomically(path, "0123456789");
  InputFile file(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(Read(file, 3, 4), "3456");
  EXPECT_EQ(Read(file, 0, 10), "0123456789");
  EXPECT_EQ(Read(file, 10, 0), "");
  const InputFile moved(std::move(file));
  EXPECT_EQ(Read(moved, 8, 2), "89");
  EXPECT_THROW(Read(moved, 8, 3), InternalError);
  EXPECT_THROW(Read(moved, -1, 1), InternalError);
}

TEST(InputFile, KeepsTheFileThatItOpened) {
  const fs::path path = FreshFolder("replaced") / "file";
  WriteFileAtomically(path, "old one");
  InputFile old_file(path);
  WriteFileAtomically(path, "");
  EXPECT_EQ(InputFile(path).size(), 0);
  EXPECT_EQ(Read(old_file, 0, old_file.size()), "old one");
  old_file = InputFile(path);
  EXPECT_EQ(old_file.size(), 0);
}

TEST(InputFile, NeedsAFile) {
  const fs::path folder = FreshFolder("no_input");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(InputFile(folder / "absent"), EnvironmentError);
  EXPECT_THROW(InputFile{folder}, EnvironmentError);
  EXPECT_THROW(InputFile("/dev/zero"), EnvironmentError);
  EXPECT_THROW(InputFile(folder / "pipe"), EnvironmentError);  // no waiting
}

TEST(InputFile, SaysWhenTheFileBecameShorter) {
  const fs::path path = FreshFolder("shrinks") / "tokens.bin";
  WriteFileAtomically(path, "0123456789");
  const InputFile file(path);
  fs::resize_file(path, 4);
  EXPECT_EQ(Read(file, 0, 4), "0123");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read(file, 2, 5); }),
                   "shrinks/tokens.bin: became shorter",
                   "10 bytes, and now has at most 4", "restore it"));
}

TEST(InputFile, SaysWhyTheSystemDoesNotRead) {
  const fs::path path = FreshFolder("unreadable") / "file";
  WriteFileAtomically(path, "0123456789");
  const InputFile file(path);
  // EFAULT, which stands in for EIO.
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { file.Read(0, 10, nullptr); }),
           "cannot read", "unreadable/file", "check the disk"));
}

}  // namespace
}  // namespace softmoe
