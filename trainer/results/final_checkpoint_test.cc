// SPDX-License-Identifier: Apache-2.0
//
// Whether a checkpoint has the parameters that a result reports on.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result.h"
#include "trainer/results/train_state.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// A finished run of three steps, and its checkpoint.
class FinalCheckpoint : public testing::Test {
 protected:
  FinalCheckpoint() {
    result_.config = TinyConfig(RouterKind::kSoftLearned);
    result_.config.training.steps = 3;
    identity_ = {
        .config = result_.config, .tokens = {"data", "index", ""}, .isa = "v3"};
    result_.identity = identity_;
    for (int64_t step = 1; step <= 3; ++step) {
      result_.steps.push_back(NumberedRecord(step, 2));
    }
    result_.tau = 1.5;
    result_.parameters = 1;
    result_.final_validation.loss = 4;
    result_.code_version = "0123456789ab";
    state_.code_version = "fedcba987654";
    state_.step = 3;
    state_.tau = result_.tau;
    state_.history = result_.steps;
  }

  std::string Why() const {
    const auto path = FreshFolder("final") / kCheckpointName;
    WriteCheckpoint(path, identity_, "", state_, {{1}, {2}, {3}});
    return WhyNotFinal(result_, Checkpoint(path));
  }

  RunResult result_;
  RunIdentity identity_;
  TrainState state_;
};

TEST_F(FinalCheckpoint, HasTheStepsOfTheResult) {
  EXPECT_EQ(Why(), "");
  for (StepRecord& step : state_.history) {
    step.seconds += 1;
    step.tokens_per_second += 1;
  }
  EXPECT_EQ(Why(), "");
}

TEST_F(FinalCheckpoint, IsOfTheRun) {
  identity_.config.training.seed += 1;
  EXPECT_TRUE(Says(Why(), "of different runs"));
}

TEST_F(FinalCheckpoint, IsOfTheLastStep) {
  state_.step = 2;
  state_.history.pop_back();
  EXPECT_TRUE(Says(Why(), "of step 2 of 3"));
}

TEST_F(FinalCheckpoint, IsOfTheVeryTraining) {
  state_.history[1].loss += 1e-9;
  EXPECT_TRUE(Says(Why(), "of different trainings", "metrics of steps"));
  state_.history = result_.steps;
  EXPECT_EQ(Why(), "");
  state_.history[2].allocation[1] += 1e-9;
  EXPECT_TRUE(Says(Why(), "of different trainings"));
  state_.history = result_.steps;
  state_.tau += 1e-9;
  EXPECT_TRUE(Says(Why(), "of different trainings"));
}

}  // namespace
}  // namespace softmoe::trainer
