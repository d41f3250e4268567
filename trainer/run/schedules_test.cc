// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/schedules.h"

#include <gtest/gtest.h>

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

TEST(LearningRate, WarmUpOverTheWholeRunNeverDecays) {
  TrainingConfig training;
  training.steps = 10;
  training.warmup_fraction = 1;
  EXPECT_EQ(LearningRate(training, 10), 1e-3);
  EXPECT_NEAR(LearningRate(training, 5), 0.5e-3, Bound(0.5e-3));
}

TEST(Temperature, EndsWhereItIsToldTo) {
  Config config = PaperOwt();
  config.router.temperature_start = 7;
  config.router.temperature_end = 2;
  EXPECT_EQ(Temperature(config, 0), 7.0);
  EXPECT_NEAR(Temperature(config, 9000), 4.5, Bound(7.0));
  EXPECT_EQ(Temperature(config, 18000), 2.0);
  config.router.temperature_start = 1e-30;
  config.router.temperature_end = 1;
  EXPECT_EQ(Temperature(config, 0), 1e-30);
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
