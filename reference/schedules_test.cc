// SPDX-License-Identifier: Apache-2.0
#include "reference/schedules.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace softmoe::reference {
namespace {

// The error of a few operations on numbers up to the peak of a schedule.
double Ulps(double peak) { return 8 * 0x1p-52 * peak; }

TEST(LearningRate, WarmUpBeginsAtZeroAndMayEndAtThePeak) {
  TrainingConfig training;
  training.steps = 10;
  training.warmup_fraction = 1;
  EXPECT_NEAR(LearningRate(training, 10), 1e-3, Ulps(1e-3));
  EXPECT_NEAR(LearningRate(training, 5), 5e-4, Ulps(1e-3));
  training.warmup_fraction = 0.05;  // half a step
  EXPECT_EQ(LearningRate(training, 0), 0);
}

TEST(Temperature, EndsWhereItIsToldTo) {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  config.router.temperature_end = 2;
  EXPECT_EQ(Temperature(config, 0), 5);
  EXPECT_NEAR(Temperature(config, 9000), 3.5, Ulps(5));  // 2 + 3 * 1/2
  EXPECT_NEAR(Temperature(config, 18000), 2, Ulps(5));
  config.router.temperature_start = 1e-30;
  config.router.temperature_end = 1;
  EXPECT_EQ(Temperature(config, 0), 1e-30);
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
