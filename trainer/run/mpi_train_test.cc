// SPDX-License-Identifier: Apache-2.0
//
// //:train on processes under mpirun.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "kernels/isa.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/rank_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

class MpiTrain : public RankTest {
 protected:
  // Expects that all ranks end with 2 and print `words`, and write nothing.
  void ExpectRefused(int size, const Change& change,
                     const std::string& words) const {
    const auto ranks = StartRanks(size, Train("refused"), change);
    EXPECT_EQ(ranks->AwaitEnd(), 2) << ranks->output();
    EXPECT_EQ(Count(ranks->output(), words), size) << ranks->output();
    for (int rank = 0; rank < size; ++rank) {
      // Messages of ranks other than 0 carry their rank.
      const std::string from =
          rank == 0 ? "\ntrain: error: "
                    : "\nrank " + std::to_string(rank) + ": train: error: ";
      EXPECT_EQ(Count(ranks->output(), from), 1) << ranks->output();
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }
};

TEST_F(MpiTrain, LeavesWhatOneProcessLeaves) {
  const ProgramResult alone = RunAlone("alone");
  ASSERT_TRUE(EndedWith(alone, 0));
  for (const int ranks : {1, 2, 4}) {
    const std::string run = std::to_string(ranks);
    const ProgramResult result = RunMpi(ranks, run);
    ASSERT_TRUE(EndedWith(result, 0));
    EXPECT_EQ(Count(result.output, "step 20/20 | loss "), 1) << result.output;
    EXPECT_EQ(Count(result.output, "\nval loss "), 1) << result.output;
    // Only rank 0 prints, except for MPI's library in containers without /sys.
    EXPECT_EQ(Count(result.output, "\n") - Count(result.output, "[hwloc/"),
              Count(alone.output, "\n"))
        << result.output;
    ExpectSameRun(folder_ / "alone", folder_ / run);
  }
  // And a finished run is only read.
  EXPECT_EQ(RunMpi(2, "2").exit_status, 0);
}

TEST_F(MpiTrain, LeavesWhatOneProcessLeavesAtTheSizesOfTheSmokeGrid) {
  config_ = kSmoke;
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int ranks : {2, 4}) {
    const std::string run = std::to_string(ranks);
    const ProgramResult result = RunMpi(ranks, run);
    ASSERT_TRUE(EndedWith(result, 0));
    ExpectSameRun(folder_ / "alone", folder_ / run);
  }
}

TEST_F(MpiTrain, ASignalToOneRankSavesAndEndsAll) {
  // So many steps that none of them ends before the signal comes.
  const Strings steps = {"--set", "training.steps=400"};
  ASSERT_EQ(RunAlone("alone", steps).exit_status, 0);

  const auto ranks = StartRanks(2, Train("stopped", steps));
  ASSERT_TRUE(ranks->Await("\nstep 2/400")) << ranks->output();
  EXPECT_EQ(kill(ranks->ProcessOf(1), SIGTERM), 0);
  EXPECT_EQ(ranks->AwaitEnd(), 75) << ranks->output();
  const std::string output = ranks->output();
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
  ASSERT_TRUE(EndedWith(rest, 0));
  EXPECT_EQ(Count(rest.output, "continuing after step "), 1);
  EXPECT_EQ(Count(rest.output, "h5 (trained in several sessions)\n"), 1);
  ExpectSameRun(folder_ / "alone", folder_ / "stopped");
}

TEST_F(MpiTrain, RanksThatDisagreeEndWithTwoAndWriteNothing) {
  const auto of_rank_1 = [](const auto& change) {
    return [change](int rank, Strings& command) {
      if (rank == 1) change(command);
    };
  };
  ExpectRefused(2, of_rank_1([](Strings& command) {
                  command = Joined(command, {"--set", "training.seed=7"});
                }),
                "rank 0 has configuration ");

  ExpectRefused(2, of_rank_1([](Strings& command) {
                  command = Joined(command, {"--checkpoint-every", "5"});
                }),
                "rank 0 has --checkpoint-every ");

  if (kernels::IsaAvailable(kernels::Isa::kV4)) {
    ExpectRefused(2, of_rank_1([](Strings& command) {
                    command = Joined(command, {"--isa", "v3"});
                  }),
                  "rank 0 has isa v4, rank 1 has v3; give all ranks the same "
                  "--device, and --isa=v3");
  }

  // Other tokens, under the same name.
  const std::filesystem::path other = WriteTinyTokens(folder_ / "other", 2);
  ExpectRefused(2, of_rank_1([&](Strings& command) {
                  *std::ranges::find(command, tokens_.string()) = other;
                }),
                "rank 0 has data_sha256 ");

  // A program with other bytes; what follows the last section is not loaded.
  const std::filesystem::path program = folder_ / "train";
  std::filesystem::copy_file(Train("")[0], program);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::ofstream(program, std::ios::app) << "another build";
  ExpectRefused(2, of_rank_1([&](Strings& command) { command[0] = program; }),
                "rank 0 has program ");
}

TEST_F(MpiTrain, GroupsThatDoNotDivideEndWithTwo) {
  ExpectRefused(
      3, [](int, Strings&) {}, "start 1, 2 or 4 ranks");
}

// Without the launcher, each process would be the only rank of a run.
TEST_F(MpiTrain, WithoutItsLauncherEndsWithFive) {
  const auto expect = [&](const Strings& environment,
                          const std::string& words) {
    const ProgramResult result =
        RunProgram(Joined(Joined({"env"}, environment),
                          Train("refused", {"--ranks", "mpi"})),
                   folder_);
    EXPECT_TRUE(EndedWith(result, 5));
    EXPECT_EQ(Count(result.output, words), 1) << result.output;
    EXPECT_EQ(Count(result.output,
                    "mpirun -n N (on Debian: apt-get install openmpi-bin), or "
                    "with srun --mpi=pmix"),
              1)
        << result.output;
  };
  expect({}, "no launcher known to Open MPI started this process");
  expect({"PMI_RANK=0"}, "the mpirun of another MPI started this process");
  expect({"SLURM_PROCID=0"}, "srun started this process, but without PMIx");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// A shell that an mpirun has started passes its variables on.
TEST_F(MpiTrain, WithWhatAnotherMpirunLeftEndsWithFive) {
  const std::pair<Strings, std::string> kCases[] = {
      {{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4"},
       "OMPI_COMM_WORLD_RANK=3 is in the environment, and this is rank 0 of "
       "1: "},
      {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4"},
       ": OMPI_COMM_WORLD_SIZE=4 is in the environment"},
      {{"PMIX_RANK=2"}, ": PMIX_RANK=2 is in the environment"}};
  for (const auto& [environment, words] : kCases) {
    const ProgramResult result =
        RunProgram(Joined(Joined({"env"}, environment),
                          Train("refused", {"--ranks", "mpi"})),
                   folder_);
    EXPECT_TRUE(
        EndedWith(result, 5, words, "left over from another mpirun; unset it"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// Runs in which the loader finds another library under the name of Open MPI's.
class OtherMpiTrain : public RankTest {
 protected:
  // Expects that //:train ends with 5, prints `words`, and writes nothing.
  void ExpectRefused(const std::string& version, const std::string& words) {
    const ProgramResult result = RunProgram(
        Joined({"env", "LD_LIBRARY_PATH=" + (folder_ / "lib").string(),
                "OTHER_MPI_VERSION=" + version},
               Train("refused", {"--ranks", "mpi"})),
        folder_);
    EXPECT_TRUE(EndedWith(result, 5));
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
