// SPDX-License-Identifier: Apache-2.0
#include "core/files/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

using Names = std::vector<std::string>;

// Returns the name of the hidden folder beside the target.
std::string HiddenName(const TemporaryFolder& folder) {
  return folder.path().parent_path().filename().string();
}

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

TEST(TemporaryFolder, ReplacesAFile) {
  const auto parent = FreshFolder("replace_file");
  WriteFileAtomically(parent / "result", "no folder");
  TemporaryFolder folder(parent / "result");
  folder.Commit();
  EXPECT_TRUE(std::filesystem::is_directory(parent / "result"));
  EXPECT_EQ(FilesIn(parent), (Names{"result"}));
}

TEST(TemporaryFolder, WhatIsThereStaysIfItCannotBeReplaced) {
  const auto parent = FreshFolder("not_replaced");
  std::filesystem::create_directory(parent / "result");
  WriteFileAtomically(parent / "result" / "file", "good");
  {
    TemporaryFolder folder(parent / "result");
    std::filesystem::remove(folder.path());
    EXPECT_THROW(folder.Commit(), EnvironmentError);
  }
  EXPECT_EQ(ReadWholeFile(parent / "result" / "file"), "good");
  EXPECT_EQ(FilesIn(parent), (Names{"result"}));
}

TEST(TemporaryFolder, OneOfManyThatCommitAtOnceIsLeftWhole) {
  const auto parent = FreshFolder("at_once");
  std::vector<std::string> failures(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& failure : failures) {
      threads.emplace_back([&failure, &parent] {
        failure = MessageOf<EnvironmentError>([&] {
          for (int i = 0; i < 500; ++i) {
            TemporaryFolder folder(parent / "result");
            std::filesystem::create_directory(folder.path() / "content");
            folder.Commit();
          }
        });
      });
    }
  }
  EXPECT_EQ(failures, std::vector<std::string>(4, kNoError));
  EXPECT_EQ(FilesIn(parent), (Names{"result"}));
  EXPECT_EQ(FilesIn(parent / "result"), (Names{"content"}));
}

TEST(TemporaryFolder, ClearsUpAfterTheDeadAndOnlyThem) {
  const auto parent = FreshFolder("leftovers");
  const TemporaryFolder alive(parent / "result");
  WriteFileAtomically(alive.path() / "file", "content");
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder dying(parent / "result");
    WriteFileAtomically(dying.path() / "file", "content");
    _exit(0);  // runs no destructors, like a death by a signal
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(FilesIn(parent).size(), 2u);
  std::filesystem::create_directories(parent / ".other.partial-abcdef");
  { const TemporaryFolder next(parent / "result"); }
  EXPECT_EQ(FilesIn(parent),
            (Names{".other.partial-abcdef", HiddenName(alive)}));
  EXPECT_EQ(ReadWholeFile(alive.path() / "file"), "content");
}

// NFS tells other machines that a file is locked, but not that a folder is.
TEST(TemporaryFolder, OneInUseStaysWhereLocksOnFoldersDoNotReach) {
  const auto parent = FreshFolder("nfs");
  const TemporaryFolder alive(parent / "result");
  WriteFileAtomically(alive.path() / "file", "content");
  int unlocked = 0;
  for (const std::string& number : FilesIn("/proc/self/fd")) {
    std::error_code closed;  // that of the list itself
    const auto open = std::filesystem::read_symlink(
        std::filesystem::path("/proc/self/fd") / number, closed);
    if (open != parent / HiddenName(alive)) continue;
    ASSERT_EQ(flock(std::stoi(number), LOCK_UN), 0);
    ++unlocked;
  }
  EXPECT_EQ(unlocked, 1);
  RemoveLeftoverFolders(parent);
  { const TemporaryFolder next(parent / "result"); }
  EXPECT_EQ(ReadWholeFile(alive.path() / "file"), "content");
}

TEST(TemporaryFolder, ClearsUpAfterTheDeadOfEveryTarget) {
  const auto parent = FreshFolder("all_leftovers");
  const TemporaryFolder alive(parent / "result");
  const Names kept = {"result", ".hidden", "x.partial-abcdef", ".partial-abc"};
  for (const std::string& name : kept) {
    std::filesystem::create_directory(parent / name);
  }
  const Names expected = FilesIn(parent);
  for (const char* name : {".one.partial-abcdef", ".one.partial-abcdef.old",
                           ".two.partial-ghijkl"}) {
    std::filesystem::create_directories(parent / name / "sub");
  }
  RemoveLeftoverFolders(parent);
  EXPECT_EQ(FilesIn(parent), expected);
  RemoveLeftoverFolders(parent / "absent");  // nothing to do
}

// Two processes may write under one name; in different containers they may even
// share a process number.
TEST(TemporaryFolder, TwoOfOneNameDoNotMeet) {
  const auto parent = FreshFolder("two");
  TemporaryFolder first(parent / "result"), second(parent / "result");
  EXPECT_NE(first.path(), second.path());
  WriteFileAtomically(first.path() / "file", "first");
  WriteFileAtomically(second.path() / "file", "second");
  second.Commit();
  first.Commit();
  EXPECT_EQ(ReadWholeFile(parent / "result" / "file"), "first");
  EXPECT_EQ(FilesIn(parent), Names{"result"});
}

TEST(TemporaryFolder, OthersMayReadWhatTheyMayReadElsewhere) {
  const auto parent = FreshFolder("mode");
  const TemporaryFolder folder(parent / "result");
  EXPECT_EQ(std::filesystem::status(folder.path()).permissions(),
            std::filesystem::status(parent).permissions());
}

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

TEST(TemporaryParent, IsTmpWhereTheNamedFolderIsGone) {
  const auto parent = FreshFolder("parent");
  const std::string gone = (parent / "gone").string();
  for (const auto& [named, expected] :
       {std::pair<std::string, fs::path>{parent.string(), parent},
        {gone, "/tmp"},
        {"", "/tmp"}}) {
    ASSERT_EQ(::setenv("TMPDIR", named.c_str(), 1), 0);
    EXPECT_EQ(TemporaryParent(), expected) << named;
  }
  ::unsetenv("TMPDIR");
}

TEST(PrivateFolder, SaysWhereItCannotBeMade) {
  // Not even root can make a folder there.
  ASSERT_EQ(::setenv("TMPDIR", "/proc", 1), 0);
  try {
    const PrivateFolder folder;
    FAIL() << folder.path();
  } catch (const EnvironmentError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("/proc/softmoe-"), std::string::npos) << what;
    EXPECT_NE(what.find("set TMPDIR"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace softmoe
