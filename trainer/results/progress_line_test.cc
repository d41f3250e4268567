// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/progress_line.h"

#include <gtest/gtest.h>

#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

StepRecord Record() {
  StepRecord record;
  record.step = 1200;
  record.loss = 3.41268;
  record.load_balance_loss = 0.1;
  record.z_loss = 0.002;
  record.active_experts = 1.61;
  record.layer_active_experts = {1.0, 1.2, 2.9, 1.34};
  record.allocation = {1.0, 1.5, 2.7, 1.2};
  record.temperature = 4.63;
  record.gradient_norm = 0.41;
  record.learning_rate = 9.8e-4;
  record.seconds = 0.385;
  record.tokens_per_second = 163210;
  return record;
}

TEST(ProgressLine, SaysWhatASoftRunWantsToKnow) {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  EXPECT_EQ(ProgressLine(config, Record(), 0.4),
            "step 1200/18000 | loss 3.4127 | aux 0.102 | AE 1.61 (min 1.00@L1 "
            "max 2.90@L3) | k_l 1.00..2.70 | T 4.63 | gnorm 0.41 | lr 9.8e-04 "
            "| 385 ms | 163k tok/s | eta 1h52");
}

TEST(ProgressLine, LeavesOutWhatSparseRunsLackAndShowsLostTokens) {
  Config config;
  StepRecord record = Record();
  record.zero_active_fraction = 0.334;
  const std::string line = ProgressLine(config, record, 0.4);
  EXPECT_FALSE(Says(line, "k_l"));
  EXPECT_FALSE(Says(line, "| T "));
  EXPECT_TRUE(Says(line, "| zero AE 33.4% |"));
}

// The share is shown only while some token has no expert.
TEST(ProgressLine, ShowsLostTokensOnlyWhereThereAreSome) {
  const Config config;
  EXPECT_FALSE(Says(ProgressLine(config, Record(), 0.4), "zero AE"));
  StepRecord record = Record();
  record.zero_active_fraction = 1e-9;
  EXPECT_TRUE(Says(ProgressLine(config, record, 0.4), "zero AE 0.0%"));
}

TEST(ShortCount, KeepsThreeDigits) {
  EXPECT_EQ(ShortCount(0), "0");
  EXPECT_EQ(ShortCount(873), "873");
  EXPECT_EQ(ShortCount(999.6), "1.00k");
  EXPECT_EQ(ShortCount(1234), "1.23k");
  EXPECT_EQ(ShortCount(12345), "12.3k");
  EXPECT_EQ(ShortCount(163210), "163k");
  EXPECT_EQ(ShortCount(999600), "1.00M");
  EXPECT_EQ(ShortCount(9996), "10.0k");
  // Numbers that would print with one digit more switch to the next precision.
  EXPECT_EQ(ShortCount(999.25), "999");
  EXPECT_EQ(ShortCount(999.5), "1.00k");
  EXPECT_EQ(ShortCount(9994), "9.99k");
  EXPECT_EQ(ShortCount(9995), "10.0k");
  EXPECT_EQ(ShortCount(99940), "99.9k");
  EXPECT_EQ(ShortCount(99950), "100k");
  EXPECT_EQ(ShortCount(2.5e9), "2.50G");
  EXPECT_EQ(ShortCount(2.5e12), "2.50T");
  EXPECT_EQ(ShortCount(2.5e15), "2500T");  // no larger one
}

}  // namespace
}  // namespace softmoe::trainer
