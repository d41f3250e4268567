// SPDX-License-Identifier: Apache-2.0
//
// A rank is killed or stopped while it trains, at a moment that a seed decides.
// The others end, and what they leave goes on to the bits of an undisturbed
// run. The BUILD file sets the number of MOMENTS of each kind.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/rank_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

constexpr int kRanks = 4;
// So many steps that no rank ends before the moment, even if this test gets no
// CPU time for a while.
const Strings kSteps = {"--set", "training.steps=150"};
// Without validations, since the others wait for a rank that stops within one.
const Strings kStepsAlone = Joined(kSteps, {"--set", "training.eval_every=0"});

class RankFailure : public RankTest {
 protected:
  // At each moment, `victim` is disturbed once rank 0 has printed `step`.
  struct Moment {
    int victim;
    std::string step;
  };
  static Moment MomentOf(int number) {
    std::mt19937 chance(static_cast<unsigned>(number));
    const int victim = static_cast<int>(chance() % kRanks);
    const auto step = 3 + chance() % 30;
    return {victim, "\nstep " + std::to_string(step) + "/150"};
  }

  // Resumes what was left, on another number of ranks, and trains to the end.
  void ExpectToGoOn(const std::string& run, int number,
                    const Strings& steps) const {
    EXPECT_FALSE(std::filesystem::exists(folder_ / run / kResultName))
        << "it ended before it was disturbed";
    const ProgramResult rest =
        number % 2 == 0 ? RunAlone(run, steps) : RunMpi(2, run, steps);
    ASSERT_TRUE(EndedWith(rest, 0));
    EXPECT_EQ(Count(rest.output, "continuing after step "), 1) << rest.output;
    ExpectSameRun(folder_ / "alone", folder_ / run);
  }

  // Trains to some step after the first, and saves.
  void BeginRun(const std::string& run, const Strings& steps) const {
    const auto ranks = StartRanks(kRanks, Train(run, steps));
    ASSERT_TRUE(ranks->Await("\nstep 2/150")) << ranks->output();
    ASSERT_EQ(::kill(ranks->ProcessOf(1), SIGTERM), 0);
    ASSERT_EQ(ranks->AwaitEnd(), 75) << ranks->output();
  }

  // Starts ranks that notice within 2 s that one of them is silent.
  std::unique_ptr<RunningProgram> StartImpatient(const std::string& run) const {
    return StartRanks(
        kRanks, Joined(Train(run, kStepsAlone), {"--silence-limit", "2"}));
  }

  static void Signal(RunningProgram& ranks, int rank, int signal) {
    EXPECT_EQ(::kill(ranks.ProcessOf(rank), signal), 0);
  }
};

TEST_F(RankFailure, KilledRanksEndAll) {
  const Strings steps = Joined(kSteps, {"--checkpoint-every", "2"});
  ASSERT_EQ(RunAlone("alone", kSteps).exit_status, 0);
  for (int number = 0; number < MOMENTS; ++number) {
    SCOPED_TRACE(number);
    const std::string run = std::to_string(number);
    const Moment moment = MomentOf(number);
    const auto ranks = StartRanks(kRanks, Train(run, steps));
    ASSERT_TRUE(ranks->Await(moment.step)) << ranks->output();
    Signal(*ranks, moment.victim, SIGKILL);
    EXPECT_EQ(ranks->AwaitEnd(), 128 + SIGKILL) << ranks->output();
    ExpectToGoOn(run, number, kSteps);
  }
}

TEST_F(RankFailure, StoppedRanksAreNamed) {
  ASSERT_EQ(RunAlone("alone", kStepsAlone).exit_status, 0);
  for (int number = 0; number < MOMENTS; ++number) {
    SCOPED_TRACE(number);
    const std::string run = std::to_string(number);
    const Moment moment = MomentOf(number);
    BeginRun(run, kStepsAlone);
    const auto ranks = StartImpatient(run);
    ASSERT_TRUE(ranks->Await("continuing after step ")) << ranks->output();
    ASSERT_TRUE(ranks->Await("\nstep ")) << ranks->output();
    Signal(*ranks, moment.victim, SIGSTOP);
    EXPECT_EQ(ranks->AwaitEnd(), 5) << ranks->output();
    EXPECT_GE(Count(ranks->output(), "train: error: step "), 1)
        << ranks->output();
    EXPECT_GE(Count(ranks->output(), ": nothing from rank " +
                                         std::to_string(moment.victim) +
                                         " within 2 s; look at its output"),
              1)
        << ranks->output();
    ExpectToGoOn(run, number, kStepsAlone);
  }
}

// The others have to notice that rank 0 cannot write. Otherwise a signal would
// end them with 75, which says that all is saved.
TEST_F(RankFailure, NobodyReportsACheckpointThatRankZeroHasNotWritten) {
  const auto ranks = StartImpatient("stopped");
  ASSERT_TRUE(ranks->Await("\nstep 3/150")) << ranks->output();
  Signal(*ranks, 0, SIGSTOP);
  for (int rank = 1; rank < kRanks; ++rank) Signal(*ranks, rank, SIGTERM);
  EXPECT_EQ(ranks->AwaitEnd(), 5) << ranks->output();
  EXPECT_EQ(Count(ranks->output(), "stopped: "), 0) << ranks->output();
}

// To the ranks, it is as if their machine had slept.
TEST_F(RankFailure, RanksThatAreAllStoppedGoOnTogether) {
  const auto ranks = StartImpatient("slept");
  ASSERT_TRUE(ranks->Await("\nstep 3/150")) << ranks->output();
  for (int rank = 0; rank < kRanks; ++rank) Signal(*ranks, rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  for (int rank = 0; rank < kRanks; ++rank) Signal(*ranks, rank, SIGCONT);
  EXPECT_EQ(ranks->AwaitEnd(), 0) << ranks->output();
}

}  // namespace
}  // namespace softmoe::trainer
