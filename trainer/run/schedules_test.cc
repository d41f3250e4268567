// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/schedules.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

// A value of size s that went through a handful of double operations, one of
// them a cosine of libm (at most 1 ulp): 8 roundings are more than occur.
double Bound(double size) { return 8 * 0x1p-53 * size; }

Config PaperOwt() {
  Config config;  // the defaults are the paper's OpenWebText run
  config.router.kind = RouterKind::kSoftFixed;
  return config;
}

TEST(LearningRate, IsThePaperScheduleAtItsNamedPoints) {
  const TrainingConfig training = PaperOwt().training;
  ASSERT_EQ(training.steps, 18000);
  // Warm-up of 1 %: 180 updates.
  EXPECT_EQ(LearningRate(training, 0), 0.0);
  EXPECT_NEAR(LearningRate(training, 1), 1e-3 / 180, Bound(1e-3 / 180));
  EXPECT_NEAR(LearningRate(training, 90), 0.5e-3, Bound(0.5e-3));
  EXPECT_EQ(LearningRate(training, 180), 1e-3);
  // Half of the cosine: the mean of peak and minimum. The angle pi/2 carries a
  // rounding of its own, of the size of the cosine's slope there.
  EXPECT_NEAR(LearningRate(training, 180 + (18000 - 180) / 2), 0.505e-3,
              Bound(1e-3));
  // A quarter: (1 + cos(pi/4)) / 2.
  EXPECT_NEAR(LearningRate(training, 180 + (18000 - 180) / 4),
              1e-5 + 0.99e-3 * 0.5 * (1 + std::sqrt(0.5)), Bound(1e-3));
  EXPECT_NEAR(LearningRate(training, 18000), 1e-5, Bound(1e-5));
}

TEST(LearningRate, RisesThroughWarmUpAndFallsAfterIt) {
  const TrainingConfig training = PaperOwt().training;
  for (int64_t m = 0; m < training.steps; ++m) {
    if (m < 180) {
      ASSERT_LT(LearningRate(training, m), LearningRate(training, m + 1)) << m;
    } else {
      ASSERT_GT(LearningRate(training, m), LearningRate(training, m + 1)) << m;
    }
  }
}

TEST(LearningRate, FractionalWarmUpKeepsTheRealNumber) {
  TrainingConfig training;
  training.steps = 50;
  training.warmup_fraction = 0.05;  // W = 2.5: no update falls on the peak
  EXPECT_NEAR(LearningRate(training, 2), 1e-3 * 2 / 2.5, Bound(1e-3));
  EXPECT_NEAR(LearningRate(training, 3),
              1e-5 + 0.99e-3 * 0.5 * (1 + std::cos(M_PI * 0.5 / 47.5)),
              Bound(1e-3));
}

TEST(LearningRate, WithoutWarmUpStartsAtThePeak) {
  TrainingConfig training;
  training.steps = 10;
  training.warmup_fraction = 0;
  EXPECT_EQ(LearningRate(training, 0), 1e-3);
  EXPECT_LT(LearningRate(training, 1), 1e-3);
}

TEST(LearningRate, WarmUpOverTheWholeRunNeverDecays) {
  TrainingConfig training;
  training.steps = 10;
  training.warmup_fraction = 1;
  EXPECT_EQ(LearningRate(training, 10), 1e-3);
  EXPECT_NEAR(LearningRate(training, 5), 0.5e-3, Bound(0.5e-3));
}

TEST(Temperature, FallsFromFiveToOne) {
  const Config config = PaperOwt();
  EXPECT_EQ(Temperature(config, 0), 5.0);
  EXPECT_NEAR(Temperature(config, 9000), 3.0, Bound(4.0));
  EXPECT_NEAR(Temperature(config, 4500), 1 + 2 * (1 + std::sqrt(0.5)),
              Bound(5.0));
  EXPECT_EQ(Temperature(config, 18000), 1.0);
  for (int64_t m = 0; m < 18000; ++m) {
    ASSERT_GT(Temperature(config, m), Temperature(config, m + 1)) << m;
  }
}

TEST(Temperature, EndsWhereItIsToldTo) {
  Config config = PaperOwt();
  config.router.temperature_start = 7;
  config.router.temperature_end = 2;
  EXPECT_EQ(Temperature(config, 0), 7.0);
  EXPECT_NEAR(Temperature(config, 9000), 4.5, Bound(7.0));
  EXPECT_EQ(Temperature(config, 18000), 2.0);
}

TEST(Temperature, IsOneForTheSparseRouter) {
  Config config = PaperOwt();
  config.router.kind = RouterKind::kSparse;
  EXPECT_EQ(Temperature(config, 0), 1.0);
  EXPECT_EQ(Temperature(config, 777), 1.0);
}

TEST(Schedules, RefuseUpdatesOutsideTheRun) {
  const Config config = PaperOwt();
  EXPECT_THROW(LearningRate(config.training, -1), InternalError);
  EXPECT_THROW(LearningRate(config.training, 18001), InternalError);
  EXPECT_THROW(Temperature(config, -1), InternalError);
  EXPECT_THROW(Temperature(config, 18001), InternalError);
}

}  // namespace
}  // namespace softmoe::trainer
