// SPDX-License-Identifier: Apache-2.0
//
// Several processes on one grid, from --jobs or from the same command given
// twice: //:grid as a user meets it, with signals.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/results/checkpoint.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridJobs : public GridProgram {
 protected:
  // A row prints at least 150 letters a step, which do not fit into the pipe of
  // a held program.
  void SetUp() override {
    GridProgram::SetUp();
    ASSERT_TRUE(TakeTrained("whole"));
    whole_ = Bytes("whole/results.h5");
  }

  // Everything is there, no lock is left, and the bytes equal those of one
  // process.
  void ExpectWhole(const std::string& out = "runs/micro") {
    EXPECT_EQ(Bytes(out + "/results.h5"), whole_);
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / out)) {
      EXPECT_NE(entry.path().filename(), kLockName) << entry.path();
    }
  }

  // The process that holds the n-th run; 0 if none.
  pid_t Holder(size_t n) const {
    const auto holder = HolderOf(RunFolder(n));
    return holder ? static_cast<pid_t>(holder->process) : 0;
  }

  const Strings two_ = {"run", "micro.toml", "--jobs", "2"};
  const Strings one_ = {"run", "micro.toml", "--threads", "1"};
  std::string whole_;
};

TEST_F(GridJobs, TwoProcessesShareTheRuns) {
  HeldProgram first(Program(), one_, folder_);
  ASSERT_TRUE(first.ReadUntil("row 1/3 sparse-2, grid"));
  const pid_t holder = Holder(0);
  const std::string who = "process " + std::to_string(holder) + " on ";
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0, "running", who));
  HeldProgram second(Program(), one_, folder_);
  ASSERT_TRUE(second.ReadUntil("row 1/3 sparse-2 is held by " + who));
  ASSERT_TRUE(second.ReadUntil("row 3/3 learned-1.5 finished"));
  EXPECT_TRUE(EndedWith(first.Finish(), 0, "row 2/3 star-1.5 finished",
                        "by another process", "3 of 3 runs finished"));
  EXPECT_TRUE(EndedWith(second.Finish(), 0, "row 1/3 sparse-2 finished",
                        "by another process", "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, ARunWhoseProcessIsGoneIsTakenOver) {
  HeldProgram first(Program(), one_, folder_);
  ASSERT_TRUE(first.ReadUntil("step 10/60"));
  HeldProgram second(Program(), one_, folder_);
  ASSERT_TRUE(second.ReadUntil("row 3/3 learned-1.5 finished"));
  first.Signal(SIGKILL);
  EXPECT_EQ(first.Finish().exit_status, 128 + SIGKILL);
  EXPECT_TRUE(EndedWith(second.Finish(), 0,
                        "row 1/3 sparse-2 is held by process",
                        "row 1/3 sparse-2, grid", "3 of 3 runs finished"));
  ExpectWhole();
}

// A process was killed after it wrote its result and before it removed its
// lock.
TEST_F(GridJobs, ALockLeftInAFinishedRunGoes) {
  ASSERT_TRUE(TakeTrained());
  WriteFileAtomically(RunFolder(1) / kLockName, "left by nobody");
  {
    const FolderLock held(RunFolder(2));
    EXPECT_TRUE(EndedWith(Grid(one_), 0, "3 of 3 runs finished"));
    EXPECT_TRUE(fs::exists(RunFolder(2) / kLockName));
  }
  ExpectWhole();
}

// The lock was left by a process of another machine, on a file system whose
// locks may not reach this one: the kernel's list of mounts is replaced.
TEST_F(GridJobs, ALockOfAMachineThatCannotBeAskedEndsWithFive) {
  const ProgramResult may = RunProgram({"unshare", "--mount", "true"}, folder_);
  if (may.exit_status != 0) {
    GTEST_SKIP() << "no mounts of its own without root: " << may.output;
  }
  fs::create_directories(RunFolder(1));
  const std::string lock =
      R"({"host":"node7","boot":"b","process":12,"since":"s"})"
      "\n";
  WriteFileAtomically(RunFolder(1) / kLockName, lock);
  const std::string script =
      "sed 's/ - [^ ]* / - somefs /' /proc/$$/mountinfo >mounts && "
      "mount --bind mounts /proc/$$/mountinfo && exec '" +
      Program() + "' run micro.toml --quiet";
  EXPECT_TRUE(EndedWith(
      RunProgram({"unshare", "--mount", "bash", "-c", script}, folder_), 5,
      (RunFolder(1) / kLockName).string(), "process 12 on node7",
      "delete that file", "2 of 3 runs are finished"));
  EXPECT_EQ(ReadWholeFile(RunFolder(1) / kLockName), lock);
  fs::remove(RunFolder(1) / kLockName);
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished"));
}

// Kills at 20 moments, chosen by the number of lines read from both processes.
// No session starts before its predecessor's checkpoint.
TEST_F(GridJobs, SigkillAtRandomMomentsLosesNoMoreThanSinceTheCheckpoint) {
  std::mt19937 random(20261122);
  std::vector<int64_t> saved(3, 0);
  for (int round = 0; round < 10; ++round) {
    HeldProgram a(Program(), one_, folder_), b(Program(), one_, folder_);
    HeldProgram::ReadLinesOfEither(&a, &b, static_cast<int>(random() % 24));
    a.Signal(SIGKILL);
    b.Signal(SIGKILL);
    for (HeldProgram* killed : {&a, &b}) {
      const int status = killed->Finish().exit_status;
      EXPECT_TRUE(status == 128 + SIGKILL || status == 0) << status;
    }
    for (size_t n = 0; n < 3; ++n) {
      const fs::path checkpoint = RunFolder(n) / "checkpoint.h5";
      if (!fs::exists(checkpoint)) {
        EXPECT_EQ(saved[n], 0);
        continue;
      }
      const int64_t step = trainer::Checkpoint(checkpoint).state().step;
      EXPECT_GE(step, saved[n]);
      saved[n] = step;
    }
  }
  EXPECT_TRUE(EndedWith(Grid(one_), 0, "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, JobsAreTheSameBits) {
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "row 1/3 sparse-2 finished",
                        "row 3/3 learned-1.5 finished",
                        "3 of 3 runs finished"));
  ExpectWhole();
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--jobs", "8", "--out", "eight"}), 0,
                "3 of 3 runs finished"));
  ExpectWhole("eight");
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "3 finished", "earlier",
                        "3 of 3 runs finished"));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--jobs", "0"}), 2, "--jobs"));
}

// Signals every process, as a scheduler does, including the one that trains.
TEST_F(GridJobs, SignalsSaveAllJobs) {
  HeldProgram held(Program(), two_, folder_);
  ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
  const pid_t worker = Holder(0);
  ASSERT_GT(worker, 0);
  kill(worker, SIGTERM);
  held.Signal(SIGTERM);
  kill(worker, SIGTERM);
  EXPECT_TRUE(EndedWith(held.Finish(), 75, "stopped: "));
  EXPECT_EQ(Holder(0), 0);
  EXPECT_TRUE(fs::exists(RunFolder(0) / "checkpoint.h5"));
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0, "interrupted"));
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, AJobThatCannotSaveIsNotSaidToHaveSaved) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "TSan's runtime needs large files";
  // Nothing is saved before the signal.
  HeldProgram held("/bin/sh",
                   {"-c", "ulimit -f 60; trap '' XFSZ; exec '" + Program() +
                              "' run micro.toml --jobs 2 "
                              "--set runtime.checkpoint_every=60"},
                   folder_);
  ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
  const pid_t worker = Holder(0);
  ASSERT_GT(worker, 0);
  held.Signal(SIGTERM);
  kill(worker, SIGTERM);
  EXPECT_TRUE(EndedWith(held.Finish(), 5, "checkpoint.h5",
                        "the same command continues"));
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, AKilledJobStopsTheGridAndTheOthersSave) {
  HeldProgram held(Program(), two_, folder_);
  ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
  const pid_t worker = Holder(0);
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  EXPECT_TRUE(EndedWith(held.Finish(), 5,
                        "row 1/3 sparse-2: its process was ended by signal 9",
                        "the same command continues"));
  for (size_t n = 0; n < 3; ++n) EXPECT_EQ(Holder(n), 0);
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, JobsEndWithTheirParent) {
  HeldProgram held(Program(), two_, folder_);
  ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
  held.Signal(SIGKILL);
  // The jobs have been signalled as well; they can go on only while their
  // output is read.
  held.WaitForEnd();
  // Reads until the jobs have closed the pipe, too.
  EXPECT_EQ(held.Finish().exit_status, 128 + SIGKILL);
  EXPECT_EQ(Holder(0), 0);
  EXPECT_FALSE(fs::exists(RunFolder(0) / "result.h5"));
  EXPECT_TRUE(fs::exists(RunFolder(0) / "checkpoint.h5"));
  EXPECT_TRUE(EndedWith(Grid(two_), 0, "3 of 3 runs finished"));
  ExpectWhole();
}

TEST_F(GridJobs, AFailingRunFailsOnce) {
  WriteGrid(MicroGrid(60, kDivergingRow));
  const ProgramResult failed = Grid(two_);
  EXPECT_TRUE(EndedWith(failed, 1,
                        "row 4/4 diverges FAILED: ", "3 of 4 runs finished"));
  const std::string text = "row 4/4 diverges FAILED: ";
  EXPECT_EQ(failed.output.find(text), failed.output.rfind(text));
}

// The process that starts the grid may ignore SIGCHLD, which exec keeps.
TEST_F(GridJobs, AFailingJobIsNotTriedForEverWhereNobodyHearsOfItsEnd) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "TSan's runtime needs large files";
  EXPECT_TRUE(EndedWith(
      RunProgram({"sh", "-c",
                  "ulimit -f 60; exec env --ignore-signal=CHLD,XFSZ '" +
                      Program() + "' run micro.toml --jobs 2"},
                 folder_),
      5, "checkpoint.h5", "the same command continues"));
}

}  // namespace
}  // namespace softmoe::experiments
