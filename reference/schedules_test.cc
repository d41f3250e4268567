// SPDX-License-Identifier: Apache-2.0
#include "reference/schedules.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace softmoe::reference {
namespace {

// The error of a few operations on numbers up to the peak of a schedule.
double Ulps(double peak) { return 8 * 0x1p-52 * peak; }

TrainingConfig PaperOwt() { return TrainingConfig{}; }  // 18000 steps, W = 180

// Paper: training protocol, OWT column; values by hand from SPEC.md 4.
TEST(LearningRate, MatchesHandComputedValues) {
  const TrainingConfig training = PaperOwt();
  EXPECT_EQ(LearningRate(training, 0), 0);
  EXPECT_NEAR(LearningRate(training, 90), 5e-4, Ulps(1e-3));
  EXPECT_NEAR(LearningRate(training, 180), 1e-3, Ulps(1e-3));
  // Halfway through the decay, (18000 + 180)/2: the mean of both ends.
  EXPECT_NEAR(LearningRate(training, 9090), 5.05e-4, Ulps(1e-3));
  // A third of the way: 1 + cos(60 degrees) = 3/2.
  EXPECT_NEAR(LearningRate(training, 180 + 17820 / 3), 1e-5 + 0.75 * 9.9e-4,
              Ulps(1e-3));
  EXPECT_NEAR(LearningRate(training, 18000), 1e-5, Ulps(1e-3));
}

TEST(LearningRate, RisesThenFallsAndStaysInRange) {
  TrainingConfig training;
  training.steps = 300;
  training.warmup_fraction = 0.105;  // W = 31.5, not a whole number of steps
  double previous = -1;
  for (int64_t m = 0; m <= 300; ++m) {
    const double rate = LearningRate(training, m);
    EXPECT_LE(rate, training.learning_rate);
    if (m <= 31) {
      EXPECT_GT(rate, previous) << m;
    } else if (m > 32) {
      EXPECT_LT(rate, previous) << m;
      EXPECT_GE(rate, training.min_learning_rate) << m;
    }
    previous = rate;
  }
  EXPECT_NEAR(LearningRate(training, 31), 1e-3 * 31 / 31.5, Ulps(1e-3));
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  TrainingConfig training;
  training.warmup_fraction = 0;
  EXPECT_EQ(LearningRate(training, 0), 1e-3);
}

TEST(LearningRate, WithNothingButWarmUpEndsAtThePeak) {
  TrainingConfig training;
  training.steps = 10;
  training.warmup_fraction = 1;
  EXPECT_NEAR(LearningRate(training, 10), 1e-3, Ulps(1e-3));
  EXPECT_NEAR(LearningRate(training, 5), 5e-4, Ulps(1e-3));
}

// Paper: temperature "cosine decay from 5 to 1".
TEST(Temperature, MatchesHandComputedValues) {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  EXPECT_EQ(Temperature(config, 0), 5);
  EXPECT_NEAR(Temperature(config, 6000), 4, Ulps(5));  // 1 + 4 * 3/4
  EXPECT_NEAR(Temperature(config, 9000), 3, Ulps(5));
  EXPECT_NEAR(Temperature(config, 12000), 2, Ulps(5));
  EXPECT_NEAR(Temperature(config, 18000), 1, Ulps(5));
  // With the end at 2: 2 + 3 * 1/2, and 2.
  config.router.temperature_end = 2;
  EXPECT_NEAR(Temperature(config, 9000), 3.5, Ulps(5));
  EXPECT_NEAR(Temperature(config, 18000), 2, Ulps(5));
}

TEST(Temperature, FallsAndHasNoWarmUp) {
  Config config;
  config.router.kind = RouterKind::kSoftFixed;
  config.training.steps = 50;
  for (int64_t m = 1; m <= 50; ++m) {
    EXPECT_LT(Temperature(config, m), Temperature(config, m - 1)) << m;
  }
}

TEST(Temperature, SparseHasNone) {
  Config config;
  config.router.kind = RouterKind::kSparse;
  EXPECT_EQ(Temperature(config, 0), 1);
  EXPECT_EQ(Temperature(config, 9000), 1);
}

TEST(Schedules, StepsOutsideTheRunAreRefused) {
  Config config;
  config.training.steps = 10;
  for (const int64_t m : {-1, 11}) {
    EXPECT_THROW(LearningRate(config.training, m), InternalError);
    EXPECT_THROW(Temperature(config, m), InternalError);
  }
}

}  // namespace
}  // namespace softmoe::reference
