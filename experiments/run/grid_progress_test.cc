// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "core/testing/bounded.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/cost_model.h"

namespace softmoe::experiments {
namespace {

// Two runs of 100 steps, the second more expensive, and a clock that the test
// moves.
class GridProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    outcome_.grid.corpora.resize(1);
    outcome_.grid.seeds = {1};
    for (const int64_t experts : {1, 4}) {
      RunOutcome run;
      run.run.row.id = "row-" + std::to_string(experts);
      run.run.config.training.steps = 100;
      run.run.config.router.mean_active_experts = static_cast<double>(experts);
      run.run.runtime.log_every = 40;
      outcome_.runs.push_back(run);
    }
    small_ = Flops(0);
    large_ = Flops(1);
    ASSERT_LT(small_, large_);
  }
  double Flops(size_t n) const {
    const Config& config = outcome_.runs[n].run.config;
    return EstimateCost(config, config.router.mean_active_experts, Cluster())
        .train_flops;
  }
  ProgressOptions Options(int columns = 0) {
    ProgressOptions options;
    options.print = [this](const std::string& text) { out_ << text; };
    options.clock = [this] { return now_; };
    options.terminal_columns = columns;
    return options;
  }
  trainer::StepRecord Record(int64_t step) const {
    trainer::StepRecord record;
    record.step = step;
    record.loss = 3;
    record.seconds = 1;
    record.layer_active_experts.assign(10, 1.0);
    return record;
  }
  void Finish(size_t n) {
    outcome_.runs[n].state = RunState::kFinished;
    outcome_.runs[n].result.emplace();
    outcome_.runs[n].result->final_validation.loss = 2.5;
    outcome_.runs[n].result->unigram_loss = 5.5;
  }

  GridOutcome outcome_;
  std::ostringstream out_;
  double now_ = 1000, small_ = 0, large_ = 0;
};

TEST_F(GridProgressTest, WeighsRunsByTheirFlops) {
  GridProgress progress(outcome_, {0, 1}, Options());
  EXPECT_EQ(progress.done(), 0);
  EXPECT_TRUE(std::isinf(progress.seconds_left()));
  now_ += 500;  // preparing corpora does not count as a step
  progress.Begin(0);
  for (int64_t step = 1; step <= 100; ++step) {
    now_ += 1;
    progress.Step(Record(step));
  }
  Finish(0);
  progress.End(0, outcome_.runs[0]);
  // The small run takes 100 s, the large one more in proportion to its cost.
  EXPECT_EQ(progress.done(), small_ / (small_ + large_));
  // Each run's FLOPs are divided by 100 and multiplied again; the estimate and
  // the test each add two roundings.
  const double expected = 100 * large_ / small_;
  EXPECT_NEAR(progress.seconds_left(), expected, 8 * kDoubleUnit * expected);
}

// T1 of SPEC.md 6b: 3.64 in training, with k = 1.
TEST_F(GridProgressTest, WeighsThePapersRunsByTheirActiveExperts) {
  GridRun& run = outcome_.runs[0].run;
  run.corpus.paper_dataset = "owt";
  run.row.paper_row = "softmoe_star/k1/a4";
  const double flops = EstimateCost(run.config, 3.64, Cluster()).train_flops;
  ASSERT_GT(flops, small_);
  GridProgress progress(outcome_, {0, 1}, Options());
  progress.Begin(0);
  progress.Step(Record(100));
  EXPECT_DOUBLE_EQ(progress.done(), flops / (flops + large_));
}

TEST_F(GridProgressTest, WhatWasThereBeforeDoesNotCountForTheSpeed) {
  Finish(0);
  GridProgress progress(outcome_, {0, 1}, Options());
  EXPECT_EQ(progress.done(), small_ / (small_ + large_));
  progress.Begin(0);
  progress.End(0, outcome_.runs[0]);
  progress.Begin(1);
  // Continues from the checkpoint at step 50.
  for (int64_t step = 51; step <= 75; ++step) {
    now_ += 2;
    progress.Step(Record(step));
  }
  // Half of the FLOPs are left: a division and a product.
  EXPECT_NEAR(progress.seconds_left(), 50, 2 * kDoubleUnit * 50);
  EXPECT_TRUE(Says(out_.str(),
                   "row 1/2 row-1 finished: val loss 2.5000 (unigram "
                   "5.5000), infer AE 0.00, earlier\n"));
}

// The line appears only on a terminal, where it is rewritten; a log shows the
// result.
TEST_F(GridProgressTest, SaysThatATrainedRunIsMeasured) {
  const auto says = [&](int columns) {
    out_.str("");
    GridProgress progress(outcome_, {0, 1}, Options(columns));
    progress.Begin(0);
    progress.Step(Record(100));
    now_ += 1;
    progress.Evaluating();
    return out_.str().find("row 1/2 row-1, grid ") != std::string::npos &&
           out_.str().find("trained, being measured") != std::string::npos;
  };
  EXPECT_TRUE(says(200)) << out_.str();
  EXPECT_FALSE(says(0)) << out_.str();
}

TEST_F(GridProgressTest, AFailedRunIsNoWorkLeft) {
  GridProgress progress(outcome_, {1, 0}, Options());
  progress.Begin(0);
  now_ += 1;
  progress.Step(Record(1));
  RunOutcome failed = outcome_.runs[1];
  failed.state = RunState::kFailed;
  failed.problem = "the loss is nan";
  progress.End(0, failed);
  EXPECT_TRUE(Says(out_.str(), "row 1/2 row-4 FAILED: the loss is nan\n"));
  progress.Begin(1);
  for (int64_t step = 1; step <= 50; ++step) {
    now_ += 1;
    progress.Step(Record(step));
  }
  // The failed run's one step and one second are part of what was done. The
  // estimate has seven roundings, the test five.
  const double expected = 51 * (50 * small_) / (large_ + 50 * small_);
  EXPECT_NEAR(progress.seconds_left(), expected, 12 * kDoubleUnit * expected);
}

TEST_F(GridProgressTest, ALateFailureKeepsTheSpeed) {
  GridProgress progress(outcome_, {0, 1}, Options());
  progress.Begin(0);
  // Continues from the checkpoint at step 40.
  for (int64_t step = 41; step <= 99; ++step) {
    now_ += 1;
    progress.Step(Record(step));
  }
  RunOutcome failed = outcome_.runs[0];
  failed.state = RunState::kFailed;
  progress.End(0, failed);
  // A step of the first run takes a second; roundings as above.
  const double expected = 100 * large_ / small_;
  EXPECT_NEAR(progress.seconds_left(), expected, 12 * kDoubleUnit * expected);
  EXPECT_EQ(progress.done(), small_ / (small_ + large_));
}

TEST_F(GridProgressTest, ALogHasALineEveryLogEverySteps) {
  GridProgress progress(outcome_, {0}, Options());
  progress.Begin(0);
  for (int64_t step = 1; step <= 100; ++step) {
    now_ += 1;
    progress.Step(Record(step));
  }
  std::istringstream lines(out_.str());
  std::string line, steps;
  while (std::getline(lines, line)) {
    EXPECT_EQ(line.find("row 1/1 row-1, grid "), 0u) << line;
    steps += line.substr(line.find("step "),
                         line.find("/100") - line.find("step ")) +
             ";";
  }
  EXPECT_EQ(steps, "step 1;step 40;step 80;step 100;");
  // Too early for an estimate; then one without minutes, then one with.
  EXPECT_TRUE(Says(out_.str(), "grid 1% | step 1/100",
                   "grid 40%, 1m00 left | step 40/100"));
}

TEST_F(GridProgressTest, OnATerminalOneLineIsRewritten) {
  {
    GridProgress progress(outcome_, {0}, Options(200));
    progress.Begin(0);
    for (int64_t step = 1; step <= 3; ++step) {
      now_ += 1;
      progress.Step(Record(step));
    }
  }
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 3);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.find("row 1/1 row-1, grid 0%\r"), 0u) << text;
}

TEST_F(GridProgressTest, NamesTellRunsApart) {
  outcome_.grid.corpora.resize(2);
  outcome_.grid.seeds = {1, 2};
  outcome_.runs[0].run.corpus.id = "owt";
  outcome_.runs[0].run.seed = 2;
  GridProgress progress(outcome_, {0}, Options());
  progress.Begin(0);
  progress.Step(Record(1));
  EXPECT_EQ(out_.str().find("row 1/1 owt/row-1/seed2, "), 0u) << out_.str();
}

}  // namespace
}  // namespace softmoe::experiments
