// SPDX-License-Identifier: Apache-2.0
#include "core/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(AtomicFile, IsInvisibleUntilCommitted) {
  const fs::path folder = FreshFolder("invisible");
  {
    AtomicFile file(folder / "data");
    file.Write("hello ");
    file.Write("world");
    EXPECT_EQ(file.size(), 11);
    EXPECT_FALSE(fs::exists(folder / "data"));
    EXPECT_EQ(file.temporary_path().parent_path(), folder);
    file.Commit();
    EXPECT_EQ(ReadWholeFile(folder / "data"), "hello world");
  }
  EXPECT_EQ(FilesIn(folder), Names({"data"}));
}

TEST(AtomicFile, KeepsEveryByteAcrossBufferBoundaries) {
  const fs::path path = FreshFolder("boundaries") / "data";
  std::string expected;
  AtomicFile file(path);
  for (size_t part = 1; expected.size() < 3'000'000; part = part * 3 + 1) {
    std::string bytes(part, '\0');
    for (size_t i = 0; i < part; ++i) bytes[i] = static_cast<char>(i * 131);
    file.Write(bytes);
    expected += bytes;
  }
  file.Commit();
  EXPECT_TRUE(ReadWholeFile(path) == expected);
}

TEST(AtomicFile, AbandonedFileLeavesTheOldOneAndNothingElse) {
  const fs::path folder = FreshFolder("abandoned");
  WriteFileAtomically(folder / "data", "old");
  {
    AtomicFile file(folder / "data");
    file.Write("new");
  }
  EXPECT_EQ(ReadWholeFile(folder / "data"), "old");
  EXPECT_EQ(FilesIn(folder), Names({"data"}));
}

TEST(AtomicFile, ReplacesTheOldFile) {
  const fs::path path = FreshFolder("replace") / "data";
  WriteFileAtomically(path, "a long old content");
  WriteFileAtomically(path, "new");
  EXPECT_EQ(ReadWholeFile(path), "new");
}

// Sizes below, at and above the size of the buffer: the error comes from Write
// or from Commit.
TEST(AtomicFile, FullDiskIsAnEnvironmentErrorAndTheOldFileStays) {
  const fs::path folder = FreshFolder("full_disk");
  WriteFileAtomically(folder / "data", "old");
  for (size_t size : {5000, 1 << 20, 3 << 20}) {
    FullDisk disk(4096);
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                       WriteFileAtomically(folder / "data",
                                           std::string(size, 'x'));
                     }),
                     (folder / "data").string(), "ulimit -f"));
    EXPECT_EQ(FilesIn(folder), Names({"data"})) << size;
    EXPECT_EQ(ReadWholeFile(folder / "data"), "old");
  }
}

TEST(AtomicFile, WritingIntoNoFolderOrOverAFolderIsAnEnvironmentError) {
  const fs::path folder = FreshFolder("no_folder");
  EXPECT_THROW(AtomicFile(folder / "absent" / "data"), EnvironmentError);
  EXPECT_THROW(AtomicFile{folder}, EnvironmentError);
  EXPECT_EQ(FilesIn(folder), Names());
}

TEST(AtomicFile, DevicesAndPipesAreNotReplaced) {
  const fs::path pipe = FreshFolder("pipe") / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(AtomicFile{pipe}, EnvironmentError);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_THROW(AtomicFile("/dev/null"), EnvironmentError);  // not committed
}

TEST(AtomicFile, ALinkStaysAndItsFileIsReplaced) {
  const fs::path folder = FreshFolder("link");
  fs::create_directory(folder / "elsewhere");
  WriteFileAtomically(folder / "elsewhere" / "data", "old");
  fs::create_symlink("elsewhere/data", folder / "link");
  WriteFileAtomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(ReadWholeFile(folder / "elsewhere" / "data"), "new");
  EXPECT_EQ(FilesIn(folder / "elsewhere"), Names({"data"}));
}

// The link is relative to its own folder, and leads over another link.
TEST(AtomicFile, ALinkStaysWhereItsFileIsAbsent) {
  const fs::path folder = FreshFolder("dangling");
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink("elsewhere/next", folder / "link");
  fs::create_symlink("../data", folder / "elsewhere" / "next");
  WriteFileAtomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "elsewhere" / "next"));
  EXPECT_EQ(ReadWholeFile(folder / "data"), "new");
  EXPECT_EQ(FilesIn(folder), Names({"data", "elsewhere", "link"}));

  fs::create_symlink("round", folder / "round");
  EXPECT_THROW(AtomicFile(folder / "round"), EnvironmentError);
  EXPECT_TRUE(fs::is_symlink(folder / "round"));
}

TEST(AtomicFile, AReadOnlyFolderIsAnEnvironmentErrorWithRemedy) {
  if (geteuid() == 0) {
    // Root may write everywhere except into the kernel's own file systems.
    EXPECT_THROW(AtomicFile("/proc/softmoe_test"), EnvironmentError);
    return;
  }
  const fs::path folder = FreshFolder("read_only");
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(AtomicFile(folder / "data"), EnvironmentError);
  fs::permissions(folder, fs::perms::owner_all);
}

TEST(ReadWholeFile, AbsentFilesAndFoldersAreEnvironmentErrors) {
  const fs::path folder = FreshFolder("read");
  EXPECT_THROW(ReadWholeFile(folder / "absent"), EnvironmentError);
  EXPECT_THROW(ReadWholeFile(folder), EnvironmentError);
}

TEST(ReadWholeFile, RefusesDevicesAndPipesAtOnce) {
  const fs::path pipe = FreshFolder("read_pipe") / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& endless : {pipe, fs::path("/dev/zero")}) {
    EXPECT_TRUE(Says(
        MessageOf<EnvironmentError>([&] { ReadWholeFile(endless); }),
        "cannot read '" + endless.string() + "': it is a device or a pipe"));
  }
}

TEST(ReadSmallText, EndsAt64MiB) {
  const fs::path folder = FreshFolder("small_text");
  const auto refusal = [](const fs::path& path) {
    return MessageOf<DataError>([&] { ReadSmallText(path); });
  };
  EXPECT_TRUE(Says(refusal("/dev/zero"), "/dev/zero: larger than 64 MiB, "));
  const fs::path large = folder / "large.toml";
  WriteFileAtomically(large, "x");
  fs::resize_file(large, (int64_t{64} << 20) + 1);
  EXPECT_TRUE(Says(refusal(large), large.string() + ": larger than 64 MiB"));
  fs::resize_file(large, int64_t{64} << 20);
  EXPECT_EQ(ReadSmallText(large).size(), size_t{64} << 20);
  EXPECT_THROW(ReadSmallText(folder / "absent"), EnvironmentError);
  EXPECT_THROW(ReadSmallText(folder), EnvironmentError);
}

// A pipe like that of a shell's <(COMMAND).
TEST(ReadSmallText, ReadsAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "a = 1\n", 6), 6);
  close(ends[1]);
  EXPECT_EQ(ReadSmallText("/dev/fd/" + std::to_string(ends[0])), "a = 1\n");
  close(ends[0]);
}

TEST(AtomicFile, TemporaryFilesSayWhoMadeThem) {
  const fs::path folder = FreshFolder("temporary_owner");
  AtomicFile file(folder / "a.b.h5");
  const std::string name = file.temporary_path().filename().string();
  EXPECT_EQ(TemporaryFileOwner(name), getpid()) << name;
  EXPECT_EQ(TemporaryFileOwner(".x.1.2.12.7.tmp"), 12);
  for (const char* other :
       {"", ".tmp", "x.12.7.tmp", ".x.12.7.tm", ".x.12.tmp", "..12.7.tmp",
        ".12.7.tmp", ".x.-12.7.tmp", ".x.012.7.tmp", ".x.12.7a.tmp",
        ".x.12..tmp", ".x.99999999999999999999.7.tmp"}) {
    EXPECT_EQ(TemporaryFileOwner(other), 0) << other;
  }
}

TEST(AtomicFile, LeftoversOfOneFileAreRemovedAndNothingElse) {
  const fs::path folder = FreshFolder("leftovers");
  AtomicFile other(folder / "other.h5");  // another file, still open
  const Names kept = {"a.b.h5",
                      ".a.b.h5",
                      ".a.b.h5.7.tmp",
                      ".a.b.h5.x.7.tmp",
                      ".b.h5.12.7.tmp",
                      ".a.b.h5.9.12.7.tmp",
                      ".a.b.h5.12.7.tmp.1"};
  for (const std::string& name : kept) WriteFileAtomically(folder / name, "x");
  fs::create_directory(folder / ".a.b.h5.12.8.tmp");
  fs::create_symlink("a.b.h5", folder / ".a.b.h5.12.9.tmp");
  Names expected = FilesIn(folder);
  WriteFileAtomically(folder / ".a.b.h5.12.7.tmp", "left by a killed process");
  WriteFileAtomically(folder / ".a.b.h5.999999999.1.tmp", "");
  RemoveLeftoversOf(folder / "a.b.h5");
  EXPECT_EQ(FilesIn(folder), expected);
  RemoveLeftoversOf(folder / "absent" / "a.b.h5");  // nothing to do
}

}  // namespace
}  // namespace softmoe
