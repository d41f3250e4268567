// SPDX-License-Identifier: Apache-2.0
#include "core/files/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
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
  EXPECT_FALSE(HolderOf(folder).has_value());
  {
    const FolderLock lock(folder);
    for (int i = 0; i < 2; ++i) {
      const auto holder = HolderOf(folder);
      ASSERT_TRUE(holder.has_value());
      EXPECT_EQ(holder->process, getpid());
    }
    EXPECT_TRUE(Says(
        MessageOf<FolderHeldError>([&] { const FolderLock another(folder); }),
        "another process is working in this folder (" +
            Describe(*HolderOf(folder)) + ")"));
  }
  EXPECT_FALSE(HolderOf(folder).has_value());
  EXPECT_FALSE(HolderOf(folder / "missing").has_value());
  EXPECT_NO_THROW(FolderLock{folder});
}

// Whoever holds the lock without a name may only be asking, but not for long.
TEST(FolderLock, WhoHoldsItUnnamedIsUnknown) {
  const auto folder = FreshFolder("unnamed");
  const int other = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Describe(HolderOf(folder).value()), "unknown");
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(4 * 20));
  close(other);
  EXPECT_FALSE(HolderOf(folder).has_value());
}

TEST(FolderLock, LeavesAnothersInAFolderThatWasMadeAnew) {
  const auto folder = FreshFolder("anew");
  auto first = std::make_unique<FolderLock>(folder);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const FolderLock another(folder);
  first.reset();
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{kLockName});
}

// Renaming a link changes in one step which folder has the name.
TEST(FolderLock, AWaiterLocksTheFolderThatHasTheNameInTheEnd) {
  namespace fs = std::filesystem;
  const auto folder = FreshFolder("waiter");
  for (const char* name : {"old", "new"}) {
    fs::create_directory(folder / name);
    fs::create_directory_symlink(name, folder / (std::string("to_") + name));
  }
  fs::rename(folder / "to_old", folder / "run");
  auto first = std::make_unique<FolderLock>(folder / "run");
  std::unique_ptr<FolderLock> second;
  std::thread waiter([&] {
    second = WaitForFolder(folder / "run", [](const LockHolder&) {});
  });
  // Time for it to find the folder busy, and not to give up.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  fs::rename(folder / "to_new", folder / "run");
  first.reset();
  waiter.join();
  // The folder itself stays locked while its holder empties it.
  fs::remove(folder / "run" / kLockName);
  EXPECT_THROW(FolderLock{folder / "run"}, FolderHeldError);
}

// Nobody else can hold a lock.json on a local file system, whether it names
// another machine or is torn.
TEST(FolderLock, ALeftoverIsTakenOver) {
  const auto folder = FreshFolder("leftover");
  for (const char* left :
       {R"({"host":"elsewhere","boot":"b","process":1,"since":"then"})",
        R"({"host":"elsew)", "", "[]"}) {
    WriteFileAtomically(folder / kLockName, left);
    EXPECT_FALSE(HolderOf(folder).has_value()) << left;
    EXPECT_NO_THROW(FolderLock{folder}) << left;
    EXPECT_TRUE(FilesIn(folder).empty()) << left;
  }
}

TEST(FolderLock, AProcessThatEndsUnawareLetsGo) {
  const auto folder = FreshFolder("dead");
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{kLockName});
  EXPECT_FALSE(HolderOf(folder).has_value());
  EXPECT_NO_THROW(FolderLock{folder});
  EXPECT_TRUE(FilesIn(folder).empty());
}

uint64_t MountOf(const std::filesystem::path& folder) {
  struct statx status;
  EXPECT_EQ(statx(AT_FDCWD, folder.c_str(), 0, STATX_MNT_ID, &status), 0);
  return status.stx_mnt_id;
}

// The table of mounts given here says that the folder lies on NFS.
TEST(FolderLock, AMachineThatCannotBeAskedIsNamed) {
  const auto folder = FreshFolder("far");
  const auto with = [&](const std::string& options) {
    WriteFileAtomically(folder / "mountinfo",
                        std::to_string(MountOf(folder)) +
                            " 1 0:50 / /home rw - nfs4 server:/ rw," + options +
                            "\n");
    return folder / "mountinfo";
  };
  const std::string left =
      R"({"host":"node7","boot":"b","process":12,"since":"noon"})";
  WriteFileAtomically(folder / kLockName, left);
  try {
    const FolderLock lock(folder, with("local_lock=all"));
    FAIL() << "it was taken";
  } catch (const FolderHeldError& error) {
    FAIL() << "nobody will wait for it: " << error.what();
  } catch (const EnvironmentError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(Says(text, (folder / kLockName).string(),
                     std::string("process 12 on node7, since noon"),
                     std::string("delete that file")));
  }
  EXPECT_EQ(ReadWholeFile(folder / kLockName), left);
  EXPECT_NO_THROW(FolderLock(folder, with("local_lock=none")));
}

// In a chroot the table does not list the mount that holds its root.
TEST(FolderLock, AMountThatIsNotListedIsAskedItself) {
  const auto folder = FreshFolder("chroot");
  WriteFileAtomically(folder / "mountinfo", "");
  WriteFileAtomically(
      folder / kLockName,
      R"({"host":"node7","boot":"b","process":12,"since":"noon"})");
  EXPECT_NO_THROW(FolderLock(folder, folder / "mountinfo"));
}

TEST(JudgeLeftover, AsksWhoCanBeAsked) {
  const LockHolder here = {.host = "a",
                           .machine = "m",
                           .boot = "1",
                           .process = getpid(),
                           .since = ""};
  LockHolder left = here;
  EXPECT_EQ(JudgeLeftover(left, here, true, false), Leftover::kGone);
  EXPECT_EQ(JudgeLeftover(left, here, false, false), Leftover::kAlive);
  left.process = 999999999;  // beyond any number the kernel assigns
  EXPECT_EQ(JudgeLeftover(left, here, false, false), Leftover::kGone);
  // Containers share the boot, but do not number their processes together.
  for (const auto& [host, machine] :
       {std::pair("b", "m"), std::pair("a", "n"), std::pair("a", "")}) {
    LockHolder container = left;
    container.host = host;
    container.machine = machine;
    EXPECT_EQ(JudgeLeftover(container, here, true, false), Leftover::kGone);
    EXPECT_EQ(JudgeLeftover(container, here, false, false),
              Leftover::kCannotBeAsked);
  }
  left.boot = "2";
  EXPECT_EQ(JudgeLeftover(left, here, false, false), Leftover::kGone);
  // Two containers with the same name, and one that does not know its machine.
  for (const char* machine : {"n", ""}) {
    left.machine = machine;
    EXPECT_EQ(JudgeLeftover(left, here, true, true), Leftover::kGone);
    EXPECT_EQ(JudgeLeftover(left, here, true, false), Leftover::kCannotBeAsked);
  }
  LockHolder nameless = here;
  nameless.machine = left.machine;
  EXPECT_EQ(JudgeLeftover(left, nameless, true, false),
            Leftover::kCannotBeAsked);
  left.machine = here.machine;
  left.host = "b";
  EXPECT_EQ(JudgeLeftover(left, here, true, true), Leftover::kGone);
  EXPECT_EQ(JudgeLeftover(left, here, true, false), Leftover::kCannotBeAsked);
  EXPECT_EQ(JudgeLeftover(left, here, false, false), Leftover::kCannotBeAsked);
}

TEST(LocksReachAll, ReadsTypeAndOptions) {
  const auto reach = [](const std::string& type, const std::string& options) {
    return *LocksReachAll("20 1 8:1 / / rw - " + type +
                              " none rw\n"
                              "21 20 0:50 / /home rw,noatime shared:1 - " +
                              type + " server:/ " + options + "\n",
                          21);
  };
  EXPECT_TRUE(reach("ext4", "rw"));
  EXPECT_TRUE(reach("overlay", "rw,lowerdir=/x"));
  EXPECT_TRUE(reach("nfs4", "rw,vers=4.2,local_lock=none,addr=10.0.0.1"));
  EXPECT_FALSE(reach("nfs4", "rw,vers=4.2,local_lock=flock"));
  EXPECT_FALSE(reach("nfs", "rw,nolock,local_lock=all"));
  EXPECT_TRUE(reach("lustre", "rw,flock,lazystatfs"));
  EXPECT_FALSE(reach("lustre", "rw,localflock"));
  EXPECT_TRUE(reach("ceph", "rw"));
  EXPECT_FALSE(reach("fuse.sshfs", "rw"));
  EXPECT_FALSE(
      LocksReachAll("20 1 8:1 / / rw - ext4 none rw\n", 21).has_value());
  EXPECT_FALSE(LocksReachAll("", 21).has_value());
}

TEST(FolderLock, NeedsTheFolder) {
  EXPECT_THROW(FolderLock{FreshFolder("lock") / "missing"}, EnvironmentError);
}

}  // namespace
}  // namespace softmoe
