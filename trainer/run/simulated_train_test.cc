// SPDX-License-Identifier: Apache-2.0
//
// //:train on ranks that are processes and compute on a device, here the
// simulated one: gradients go through memory of the host, over TCP and MPI.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/process/subprocess.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/rank_test_util.h"

namespace softmoe::trainer {
namespace {

// Small batches: the simulator runs every thread of a kernel as a fiber.
const Strings kSmall = {"--set", "model.sequence_length=8",
                        "--set", "training.balance_group_sequences=1",
                        "--set", "training.global_batch_sequences=4",
                        "--set", "training.micro_batch_sequences=1",
                        "--set", "training.eval_sequences=3"};
const Strings kOnDevice = Joined(kSmall, {"--device", "cuda"});

class SimulatedTrain : public RankTest {
 protected:
  void SetUp() override {
    program_ = "trainer/run/train_simulated";
    RankTest::SetUp();
  }
};

TEST_F(SimulatedTrain, ProcessesLeaveWhatOneLeaves) {
  const ProgramResult alone = RunAlone("alone", kOnDevice);
  ASSERT_EQ(alone.exit_status, 0) << alone.output;
  EXPECT_EQ(Count(alone.output, "step 20/20 | loss "), 1) << alone.output;

  const Ranks ranks = StartRanks(2, Train("two", kOnDevice));
  ExpectEnd(ranks, 0);
  EXPECT_EQ(Count(ranks[0]->output(), "2 ranks share a device: "), 1)
      << ranks[0]->output();
  EXPECT_EQ(Count(ranks[1]->output(), "\n"), 1) << ranks[1]->output();
  ExpectSameRun("alone", "two");

  const std::string obstacle = optimized::ObstacleToMpi();
  if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  const ProgramResult four = RunMpi(4, "four", kOnDevice);
  ASSERT_EQ(four.exit_status, 0) << four.output;
  ExpectSameRun("alone", "four");
}

// A signal to one saves and ends all; a death ends all, and costs the steps
// since the checkpoint before. Whoever goes on has the bits of one that nobody
// disturbed.
TEST_F(SimulatedTrain, InterruptedProcessesGoOn) {
  const Strings often = Joined(kOnDevice, {"--checkpoint-every", "2"});
  ASSERT_EQ(RunAlone("alone", often).exit_status, 0);

  const Ranks stopped = StartRanks(2, Train("run", often));
  ASSERT_TRUE(stopped[0]->Await("\nstep 2/20")) << stopped[0]->output();
  EXPECT_EQ(::kill(stopped[1]->ProcessOf(1), SIGTERM), 0);
  ExpectEnd(stopped, 75);
  EXPECT_EQ(Count(stopped[1]->output(),
                  "rank 1: train: stopped: SIGTERM: after step "),
            1)
      << stopped[1]->output();
  const int64_t step =
      Checkpoint(folder_ / "run" / kCheckpointName).state().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 16);

  const Ranks killed = StartRanks(4, Train("run", often));
  // It goes on after what was saved.
  ASSERT_TRUE(killed[0]->Await("\nstep " + std::to_string(step + 3) + "/20"))
      << killed[0]->output();
  EXPECT_EQ(::kill(killed[2]->ProcessOf(2), SIGKILL), 0);
  for (const int rank : {0, 1, 3}) {
    const auto& program = killed[static_cast<size_t>(rank)];
    EXPECT_EQ(program->AwaitEnd(), 5) << program->output();
    EXPECT_EQ(Count(program->output(), "error: rank 2 of 4 ("), 1)
        << program->output();
  }
  EXPECT_GT(Checkpoint(folder_ / "run" / kCheckpointName).state().step, step);

  const ProgramResult rest = RunAlone("run", often);
  ASSERT_EQ(rest.exit_status, 0) << rest.output;
  ExpectSameRun("alone", "run");
}

// Ranks that would compute on different backends end before anything is
// written.
TEST_F(SimulatedTrain, RefusesRanksOnDifferentBackends) {
  const Ranks ranks =
      StartRanks(2, Train("refused", kSmall), [](int rank, Given& given) {
        if (rank == 1) given.command = Joined(given.command, {"--device=cuda"});
      });
  ExpectEnd(ranks, 2);
  for (const auto& rank : ranks) {
    EXPECT_EQ(Count(rank->output(), "rank 0 has "), 1) << rank->output();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

}  // namespace
}  // namespace softmoe::trainer
