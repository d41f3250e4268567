// SPDX-License-Identifier: Apache-2.0
//
// //:train on ranks that are processes and compute on a device, here the
// simulated one: gradients go through memory of the host, over MPI.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/rank_test_util.h"
#include "trainer/testing/trainer_test_util.h"

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

// One step after an evaluation.
TEST_F(SimulatedTrain, ProcessesLeaveWhatOneLeaves) {
  const Strings six = Joined(kOnDevice, {"--set", "training.steps=6"});
  const ProgramResult alone = RunAlone("alone", six);
  ASSERT_TRUE(EndedWith(alone, 0));
  EXPECT_EQ(Count(alone.output, "validation after step 5 | "), 1)
      << alone.output;
  EXPECT_EQ(Count(alone.output, "step 6/6 | loss "), 1) << alone.output;
  EXPECT_EQ(Count(alone.output, "between ranks"), 0) << alone.output;

  for (const int size : {2, 4}) {
    const std::string run = std::to_string(size);
    const ProgramResult result = RunMpi(size, run, six);
    ASSERT_TRUE(EndedWith(result, 0));
    EXPECT_EQ(Count(result.output, run + " ranks share a device: "), 1)
        << result.output;
    EXPECT_EQ(Count(result.output, " through memory of the host\n"), 1);
    ExpectSameRun(folder_ / "alone", folder_ / run);
  }
}

// A signal to one process saves and ends all; the death of one ends all, and
// costs the steps since the last checkpoint. Whoever goes on has the bits of an
// undisturbed run.
TEST_F(SimulatedTrain, InterruptedProcessesGoOn) {
  const Strings often = Joined(kOnDevice, {"--checkpoint-every", "2"});
  ASSERT_EQ(RunAlone("alone", often).exit_status, 0);

  const auto stopped = StartRanks(2, Train("run", often));
  ASSERT_TRUE(stopped->Await("\nstep 2/20")) << stopped->output();
  EXPECT_EQ(::kill(stopped->ProcessOf(1), SIGTERM), 0);
  EXPECT_EQ(stopped->AwaitEnd(), 75) << stopped->output();
  EXPECT_EQ(
      Count(stopped->output(), "rank 1: train: stopped: SIGTERM: after step "),
      1)
      << stopped->output();
  const int64_t step =
      Checkpoint(folder_ / "run" / kCheckpointName).state().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 16);

  const auto killed = StartRanks(4, Train("run", often));
  // The run goes on after the steps that were saved.
  ASSERT_TRUE(killed->Await("\nstep " + std::to_string(step + 3) + "/20"))
      << killed->output();
  EXPECT_EQ(::kill(killed->ProcessOf(2), SIGKILL), 0);
  EXPECT_EQ(killed->AwaitEnd(), 128 + SIGKILL) << killed->output();
  EXPECT_GT(Checkpoint(folder_ / "run" / kCheckpointName).state().step, step);

  const ProgramResult rest = RunAlone("run", often);
  ASSERT_TRUE(EndedWith(rest, 0));
  ExpectSameRun(folder_ / "alone", folder_ / "run");
}

// Ranks that would compute on different backends end before anything is
// written.
TEST_F(SimulatedTrain, RefusesRanksOnDifferentBackends) {
  const auto ranks =
      StartRanks(2, Train("refused", kSmall), [](int rank, Strings& command) {
        if (rank == 0) command = Joined(command, {"--device=cuda"});
      });
  EXPECT_EQ(ranks->AwaitEnd(), 2) << ranks->output();
  EXPECT_EQ(Count(ranks->output(), "rank 0 has isa sm_90, rank 1 has v"), 2)
      << ranks->output();
  EXPECT_EQ(
      Count(ranks->output(),
            "; give all ranks the same --device, on machines of one kind"),
      2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

}  // namespace
}  // namespace softmoe::trainer
