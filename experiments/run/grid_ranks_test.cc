// SPDX-License-Identifier: Apache-2.0
//
// Grids whose runs are each trained by several ranks, as a user starts them:
// threads, or processes of an mpirun. Either way the results are the bytes that
// one process leaves.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "core/files/folder_lock.h"
#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "trainer/testing/rank_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using trainer::Joined;
using trainer::StartRanksIn;

class GridRanksProgram : public GridProgram {
 protected:
  void Train(const std::string& toml) {
    WriteGrid(toml);
    alone_ = Grid({"run", "micro.toml", "--out", "alone"});
  }

  // `grid run` with `more`, one thread each.
  static Strings Command(const Strings& more = {}) {
    return Joined({Program(), "run", "micro.toml", "--threads", "1"}, more);
  }

  ProgramResult Mpi(int ranks, const Strings& more = {}) const {
    return RunProgram(Joined(optimized::MpiRun(ranks),
                             Joined(Command(more), {"--ranks", "mpi"})),
                      folder_);
  }

  // All is there, no lock is left, and the bytes are those of one process.
  void ExpectAsAlone(const std::string& out = "runs/micro") const {
    EXPECT_EQ(Bytes(out + "/results.h5"), Bytes("alone/results.h5"));
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / out)) {
      EXPECT_NE(entry.path().filename(), kLockName) << entry.path();
    }
  }

  ProgramResult alone_;
};

TEST_F(GridRanksProgram, ThreadsLeaveWhatOneRankLeaves) {
  ASSERT_TRUE(TakeTrained("alone"));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--ranks=2"}), 0,
                        "3 of 3 runs finished"));
  ExpectAsAlone();
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--ranks", "2", "--jobs",
                              "2", "--out", "jobs"}),
                        0, "3 of 3 runs finished"));
  ExpectAsAlone("jobs");
}

// Only rank 0 prints, even about a run that fails.
TEST_F(GridRanksProgram, ProcessesOfMpirunGoOnAfterARunThatFails) {
  Train(MicroGrid(60, kDivergingRow));
  ASSERT_TRUE(EndedWith(alone_, 1));
  // Twice: the second time, finished runs are only read.
  for (const int finished_before : {0, 3}) {
    const ProgramResult result = Mpi(2);
    EXPECT_TRUE(
        EndedWith(result, 1, "diverges FAILED: ", "3 of 4 runs finished"));
    EXPECT_EQ(Count(result.output, "grid micro: 4 runs in "), 1);
    EXPECT_EQ(Count(result.output, " finished: val loss "), 3);
    EXPECT_EQ(Count(result.output, ", earlier\n"), finished_before)
        << result.output;
    ExpectAsAlone();
    EXPECT_FALSE(
        Bytes(fs::relative(RunFolder(3), folder_) / "problem.txt").empty());
  }
}

TEST_F(GridRanksProgram, ASignalToOneRankSavesEndsAllAndTheGridResumes) {
  Train(MicroGrid(200));
  ASSERT_TRUE(EndedWith(alone_, 0));
  const auto ranks = StartRanksIn(folder_, 2, Command());
  ASSERT_TRUE(ranks->Await("row 2/3 star-1.5, grid")) << ranks->output();
  EXPECT_EQ(kill(ranks->ProcessOf(1), SIGTERM), 0);
  EXPECT_EQ(ranks->AwaitEnd(), 75) << ranks->output();
  EXPECT_EQ(Count(ranks->output(), "rank 1: grid: stopped: SIGTERM: "), 1)
      << ranks->output();
  EXPECT_EQ(Count(ranks->output(), "\ngrid: stopped: rank 1: "), 1)
      << ranks->output();
  EXPECT_TRUE(fs::exists(RunFolder(0) / "result.h5"));
  EXPECT_FALSE(fs::exists(RunFolder(2) / "result.h5"));
  // Another number of ranks continues the grid.
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished"));
  ExpectAsAlone();
}

// A run that another process holds is left to that process and waited for.
TEST_F(GridRanksProgram, ShareTheGridWithAnotherProcess) {
  ASSERT_TRUE(TakeTrained("alone"));
  HeldProgram other(Program(), {"run", "micro.toml", "--threads", "1"},
                    folder_);
  ASSERT_TRUE(other.ReadUntil("row 1/3 sparse-2, grid"));
  const auto ranks = StartRanksIn(folder_, 2, Command());
  ASSERT_TRUE(ranks->Await("row 3/3 learned-1.5 finished")) << ranks->output();
  EXPECT_EQ(Count(ranks->output(), "row 1/3 sparse-2 is held by "), 1);
  EXPECT_TRUE(EndedWith(other.Finish(), 0, "3 of 3 runs finished"));
  EXPECT_EQ(ranks->AwaitEnd(), 0) << ranks->output();
  ExpectAsAlone();
}

// Ranks also measure what finished runs lack.
TEST_F(GridRanksProgram, MeasureWhatFinishedRunsLack) {
  const std::string evaluations =
      "[evaluations]\ninference_tau_factors = [0.5]\nrouter_health = true\n";
  ASSERT_TRUE(TakeTrained());
  Train(evaluations + MicroGrid(60));
  ASSERT_TRUE(EndedWith(alone_, 0));
  ASSERT_EQ(Mpi(2).exit_status, 0);
  ExpectAsAlone();
  EXPECT_EQ(Bytes("runs/micro/inference_tau.csv"),
            Bytes("alone/inference_tau.csv"));
}

TEST_F(GridRanksProgram, RefuseWhatRanksDisagreeOnBeforeAnythingIsWritten) {
  const auto refused = [&](int size, const trainer::Change& change,
                           const std::string& words) {
    const auto ranks = StartRanksIn(folder_, size, Command(), change);
    EXPECT_EQ(ranks->AwaitEnd(), 2) << ranks->output();
    EXPECT_EQ(Count(ranks->output(), words), size) << ranks->output();
  };
  const auto of_rank_1 = [](const Strings& more) {
    return [more](int rank, Strings& command) {
      if (rank == 1) command = Joined(command, more);
    };
  };
  refused(2, of_rank_1({"--rows", "sparse-2"}), "rank 0 has runs ");
  refused(2, of_rank_1({"--seeds", "8"}), "rank 0 has runs ");
  refused(2, of_rank_1({"--out", "elsewhere"}), "rank 0 has folder ");
  // Two balance groups.
  refused(3, of_rank_1({}), "start 1 or 2 ranks");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  // One rank's mistake ends all.
  refused(2, of_rank_1({"--rows", "sparse-9"}), "sparse-9");
}

// Three ranks with two groups each add in another order than one process.
TEST_F(GridRanksProgram, ThatAreNoSubtreesLeaveAGridOfTheirOwn) {
  std::string grid = MicroGrid(60);
  grid.replace(grid.find("batch_sequences = 4"), 19, "batch_sequences = 12");
  WriteGrid(grid);
  const Strings three = {"run", "micro.toml", "--ranks", "3"};
  EXPECT_TRUE(
      EndedWith(Grid(Joined(three, {"--rows", "sparse-2"})), 0,
                "3 ranks add the gradients of 6 balance groups in an order of "
                "their own",
                "1 of 1 runs finished"));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml"}), 2,
                        "was trained by 3 ranks", "Continue with --ranks 3"));
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--ranks", "2"}), 2,
                        "was trained by 3 ranks", "Continue with --ranks 3"));
  EXPECT_TRUE(EndedWith(Grid(three), 0, "3 of 3 runs finished"));
  // Any number of ranks can read it, since nothing is trained.
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml"}), 0, "3 of 3 runs finished"));
  // The record is verified by as many ranks.
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "micro.h5"}).exit_status, 0);
  EXPECT_TRUE(EndedWith(
      Grid({"verify-record", "micro.h5", "--run", "text/sparse-2/seed7"}), 0,
      "PASS: the same bits"));
}

}  // namespace
}  // namespace softmoe::experiments
