// SPDX-License-Identifier: Apache-2.0
//
// //:train on processes under mpirun. Skipped, with the reason, where Open MPI
// is missing.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/files/runfiles.h"
#include "core/process/process.h"
#include "core/process/subprocess.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/rank_test_util.h"

namespace softmoe::trainer {
namespace {

class MpiTrain : public RankTest {
 protected:
  void SetUp() override {
    const std::string obstacle = optimized::ObstacleToMpi();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
    RankTest::SetUp();
  }
};

TEST_F(MpiTrain, LeavesWhatOneProcessLeaves) {
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int ranks : {2, 4}) {
    const std::string run = std::to_string(ranks);
    const ProgramResult result = RunMpi(ranks, run);
    ASSERT_EQ(result.exit_status, 0) << result.output;
    EXPECT_EQ(Count(result.output, "step 20/20 | loss "), 1) << result.output;
    EXPECT_EQ(Count(result.output, "\nval loss "), 1) << result.output;
    ExpectSameRun("alone", run);
    // And a finished run is only read.
    EXPECT_EQ(RunMpi(ranks, run).exit_status, 0);
  }
}

TEST_F(MpiTrain, LeavesWhatOneProcessLeavesAtTheSizesOfTheSmokeGrid) {
  config_ = kSmoke;
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int ranks : {2, 4}) {
    const std::string run = std::to_string(ranks);
    const ProgramResult result = RunMpi(ranks, run);
    ASSERT_EQ(result.exit_status, 0) << result.output;
    ExpectSameRun("alone", run);
  }
}

TEST_F(MpiTrain, ASignalToOneRankSavesAndEndsAll) {
  // So many steps that none of them ends before the signal comes.
  const Strings steps = {"--set", "training.steps=400"};
  ASSERT_EQ(RunAlone("alone", steps).exit_status, 0);

  ProcessOptions options;
  options.arguments =
      Joined(optimized::MpiRun(2),
             Joined(RankNamer("$OMPI_COMM_WORLD_RANK"),
                    Joined(Train("stopped", steps), {"--ranks", "mpi"})));
  options.folder = folder_;
  RunningProgram mpirun(options);
  ASSERT_TRUE(mpirun.Await("\nstep 2/400")) << mpirun.output();
  EXPECT_EQ(kill(mpirun.ProcessOf(1), SIGTERM), 0);
  EXPECT_EQ(mpirun.AwaitEnd(), 75) << mpirun.output();
  const std::string output = mpirun.output();
  EXPECT_EQ(Count(output, "rank 1: train: stopped: SIGTERM: after step "), 1)
      << output;
  EXPECT_EQ(Count(output, "\ntrain: stopped: rank 1: after step "), 1)
      << output;
  const int64_t step =
      Checkpoint(folder_ / "stopped" / kCheckpointName).state().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 400);

  // Another number of ranks, in threads and processes, goes on.
  const ProgramResult rest = RunMpi(4, "stopped", steps);
  ASSERT_EQ(rest.exit_status, 0) << rest.output;
  EXPECT_EQ(Count(rest.output, "going on after step "), 1);
  ExpectSameRun("alone", "stopped");
}

TEST_F(MpiTrain, RanksThatDisagreeEndWithTwoAndWriteNothing) {
  const Strings common = {"--ranks", "mpi"};
  const ProgramResult result = RunProgram(
      Joined(Joined(Joined(optimized::MpiRun(1),
                           Train("apart",
                                 Joined({"--set", "training.seed=1"}, common))),
                    {":", "-n", "1"}),
             Train("apart", Joined({"--set", "training.seed=2"}, common))),
      folder_);
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_EQ(Count(result.output, "train: error: rank 0 has configuration "), 2)
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "apart"));
}

TEST_F(MpiTrain, GroupsThatDoNotDivideEndWithTwo) {
  const ProgramResult result = RunMpi(3, "three");
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_EQ(Count(result.output, "start 1, 2 or 4 ranks"), 3) << result.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "three"));
}

// The loader finds another library under the name of Open MPI's.
class OtherMpiTrain : public RankTest {
 protected:
  // Expects that //:train ends with 5 and says `words`, and writes nothing.
  void ExpectRefused(const std::string& version, const std::string& words) {
    const ProgramResult result = RunProgram(
        Joined({"env", "LD_LIBRARY_PATH=" + (folder_ / "lib").string(),
                "OTHER_MPI_VERSION=" + version},
               Train("refused", {"--ranks", "mpi"})),
        folder_);
    EXPECT_EQ(result.exit_status, 5) << result.output;
    EXPECT_EQ(Count(result.output, "train: error: "), 1) << result.output;
    EXPECT_EQ(Count(result.output, words), 1) << result.output;
    EXPECT_EQ(Count(result.output, "apt-get install openmpi-bin"), 1)
        << result.output;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }
};

TEST_F(OtherMpiTrain, MissingOrTooOldEndsWithFive) {
  const std::filesystem::path library = folder_ / "lib/libmpi.so.40";
  std::filesystem::create_directory(folder_ / "lib");
  std::ofstream(library).flush();
  ExpectRefused("", "libmpi.so.40");
  std::filesystem::copy_file(
      RunfilePath("optimized/communicator/testing/libother_mpi.so"), library,
      std::filesystem::copy_options::overwrite_existing);
  ExpectRefused("Open MPI v3.1.3, package: Debian",
                "is 'Open MPI v3.1.3, package: Debian'; ranks over MPI need "
                "Open MPI 4 or 5");
}

}  // namespace
}  // namespace softmoe::trainer
