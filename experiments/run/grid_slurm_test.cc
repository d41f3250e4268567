// SPDX-License-Identifier: Apache-2.0
//
// //:grid on a real Slurm: a cluster of one node, started here. Skipped, with
// the reason, where Slurm's packages or root are missing, or it does not start.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"
#include "experiments/testing/slurm_test_util.h"
#include "trainer/testing/rank_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using trainer::Joined;

// Job numbers start at 1, and each test has its own cluster.
constexpr char kJob[] = "1";

// Whether the signal is pending for a stopped process, which will get it when
// it continues.
bool IsPending(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string key, value; status >> key && std::getline(status, value);) {
    if (key != "ShdPnd:") continue;
    return (std::stoull(value, nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

class GridSlurm : public GridProgram {
 protected:
  void SetUp() override {
    GridProgram::SetUp();
    const char* path = ::getenv("PATH");
    ASSERT_NE(path, nullptr);
    ::setenv("PATH", (path + std::string(":/usr/sbin:/sbin")).c_str(), 1);
    // mpirun starts ranks where srun has no PMIx.
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const std::string obstacle = ObstacleToSlurm();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
    try {
      cluster_ = std::make_unique<SlurmCluster>();
    } catch (const EnvironmentError& error) {
      fs::remove_all("/run/slurm");
      GTEST_SKIP() << error.what();
    }
    // Each checkpoint is synced, so the run lasts for seconds.
    WriteGrid(MicroGrid(600));
  }

  void TearDown() override {
    if (cluster_ == nullptr) return;
    if (HasFailure()) {
      ADD_FAILURE() << cluster_->Logs() << Log(0) << Log(1) << Log(2);
    }
    cluster_.reset();
    fs::remove_all("/run/slurm");
  }

  std::string Log(int task) const {
    const std::string path = "runs/micro/slurm/softmoe-micro-text-1_" +
                             std::to_string(task) + ".log";
    return fs::exists(folder_ / path) ? Bytes(path) : path + ": none\n";
  }

  // The process that trains the n-th run, stopped at a checkpoint; not
  // `earlier`, the process stopped before.
  pid_t HoldAtCheckpoint(size_t n, pid_t earlier = 0) const {
    pid_t process = 0;
    WaitFor(60, [&] {
      if (!fs::exists(RunFolder(n) / "checkpoint.h5")) return false;
      const auto holder = HolderOf(RunFolder(n));
      if (!holder || holder->process <= 0) return false;
      process = static_cast<pid_t>(holder->process);
      return process != earlier && kill(process, SIGSTOP) == 0;
    });
    EXPECT_FALSE(fs::exists(RunFolder(n) / "result.h5"));
    return process;
  }

  // The number of times that a task has started to train.
  int Sessions(int task) const {
    const std::string log = Log(task), line = "grid micro: 1 runs in ";
    int sessions = 0;
    for (size_t at = 0; (at = log.find(line, at)) != std::string::npos;) {
      at += line.size();
      ++sessions;
    }
    return sessions;
  }

  bool WaitForResults(size_t count) const {
    return WaitFor(120, [&] {
      for (size_t n = 0; n < count; ++n) {
        if (!fs::exists(RunFolder(n) / "result.h5")) return false;
      }
      return true;
    });
  }

  ProgramResult Slurm(const Strings& command) const {
    return RunProgram(command, folder_);
  }

  // Waits until Slurm accepts the limit: a task on its way back into the queue
  // has none to change.
  bool SetTimeLimit(const std::string& task, int minutes) const {
    return WaitFor(60, [&] {
      return Slurm({"scontrol", "update", "JobId=" + task,
                    "TimeLimit=" + std::to_string(minutes)})
                 .exit_status == 0;
    });
  }

  // One thread takes one of the node's two processors, so two tasks run at a
  // time.
  const Strings run_ = {"run",       "micro.toml", "--launcher=slurm",
                        "--threads", "1",          "--file-delay",
                        "0"};
  const Strings whole_ = {"run", "micro.toml", "--out", "whole"};
  std::unique_ptr<SlurmCluster> cluster_;
};

TEST_F(GridSlurm, StoppedAndKilledTasksGoOnAndTheBitsAreThoseOfAnUnbrokenRun) {
  const Strings rows = {"--rows", "sparse-2,star-1.5"};
  ASSERT_EQ(Grid(Joined(whole_, rows)).exit_status, 0);
  HeldProgram waiting(Program(), Joined(run_, rows), folder_);
  ASSERT_TRUE(waiting.ReadUntil("job 1: 2 rows, a task each"));

  const pid_t stopped = HoldAtCheckpoint(0);
  const pid_t killed = HoldAtCheckpoint(1);
  ASSERT_GT(stopped, 0);
  ASSERT_GT(killed, 0);
  // Five minutes before the limit Slurm sends the signal given by --signal; it
  // checks every half minute.
  const std::string task = std::string(kJob) + "_0";
  ASSERT_TRUE(SetTimeLimit(task, 5));
  // The last task, whose job id is the array's, is requeued without the other.
  kill(killed, SIGKILL);
  ASSERT_TRUE(WaitFor(60, [&] { return Sessions(1) == 2; }));
  const std::string saved = "grid: stopped: SIGTERM";
  ASSERT_TRUE(WaitFor(90, [&] {
    return IsPending(stopped, SIGTERM) ||  // or Slurm has already continued it
           Log(0).find(saved) != std::string::npos;
  }));
  kill(stopped, SIGCONT);
  ASSERT_TRUE(SetTimeLimit(task, 60));

  ASSERT_TRUE(WaitForResults(2));
  EXPECT_TRUE(EndedWith(waiting.Finish(), 0, "2 of 2 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
  for (const int task : {0, 1}) {
    EXPECT_EQ(Sessions(task), 2);
    EXPECT_TRUE(Says(Log(task), ", 1 interrupted\n"));
  }
  EXPECT_TRUE(Says(Log(0), saved));
  EXPECT_TRUE(Says(Log(1), "Killed"));
  const std::string kills = Bytes("runs/micro/slurm/kills-1_1");
  EXPECT_EQ(std::count(kills.begin(), kills.end(), '\n'), 1);
  EXPECT_FALSE(fs::exists(folder_ / "runs/micro/slurm/kills-1_0"));
}

TEST_F(GridSlurm, AKilledTaskComesBackThreeTimes) {
  const Strings row = {"--rows", "sparse-2"}, run = Joined(run_, row);
  ASSERT_EQ(Grid(Joined(whole_, row)).exit_status, 0);
  HeldProgram waiting(Program(), run, folder_);
  pid_t process = 0;
  for (int kills = 0; kills < 4; ++kills) {
    process = HoldAtCheckpoint(0, process);
    ASSERT_GT(process, 0);
    kill(process, SIGKILL);
  }
  EXPECT_TRUE(EndedWith(
      waiting.Finish(), 1,
      "text/sparse-2/seed7: not finished, and Slurm has ended its task",
      "0 of 1 runs finished"));
  EXPECT_EQ(Sessions(0), 4);
  // A new submission continues from the checkpoint.
  EXPECT_TRUE(
      EndedWith(Grid(run), 0, "job 2: 1 rows, a task each", "1 of 1 runs"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
}

// Each task is two processes, started by srun or mpirun. If one of them is
// killed, the other ends, and both come back.
TEST_F(GridSlurm, RanksOfATaskTrainTogetherAndComeBackTogether) {
  const Strings row = {"--rows", "star-1.5"};
  ASSERT_EQ(Grid(Joined(whole_, row)).exit_status, 0);
  HeldProgram waiting(Program(), Joined(run_, Joined(row, {"--ranks", "2"})),
                      folder_);
  const pid_t killed = HoldAtCheckpoint(1);
  ASSERT_GT(killed, 0);
  kill(killed, SIGKILL);
  EXPECT_TRUE(EndedWith(waiting.Finish(), 0, "job 1: 1 rows, a task each",
                        "1 of 1 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
  EXPECT_EQ(Sessions(0), 2);
  const std::string log = Log(0);
  EXPECT_TRUE(Says(log, ", 1 interrupted\n", "Killed"));
  const std::string kills = Bytes("runs/micro/slurm/kills-1_0");
  EXPECT_EQ(std::count(kills.begin(), kills.end(), '\n'), 1);
}

TEST_F(GridSlurm, CancelledTasksDoNotComeBackAndRefusedOnesNeverBegin) {
  HeldProgram waiting(Program(), run_, folder_);
  const pid_t held = HoldAtCheckpoint(0);
  ASSERT_GT(held, 0);
  EXPECT_EQ(Slurm({"scancel", kJob}).exit_status, 0);
  kill(held, SIGCONT);
  EXPECT_TRUE(EndedWith(
      waiting.Finish(), 1,
      "text/sparse-2/seed7: not finished, and Slurm has ended its task",
      "softmoe-micro-text-1_0.log"));
  EXPECT_EQ(Slurm({"squeue", "--noheader"}).output, "");

  WriteGrid("[cluster]\nsbatch = [\"--partition=none\"]\n" + MicroGrid(600));
  EXPECT_TRUE(EndedWith(Grid(run_), 5, "softmoe-micro-text.sh ended with 1",
                        "nvalid partition", "[cluster]"));
}

}  // namespace
}  // namespace softmoe::experiments

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return softmoe::experiments::CallInNamespaces([] { return RUN_ALL_TESTS(); });
}
