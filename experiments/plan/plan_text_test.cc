// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace softmoe::experiments {
namespace {

TEST(PlanNumbers, Thousands) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(1'631'409'280), "1,631,409,280");
  EXPECT_EQ(Thousands(-100), "-100");
  EXPECT_EQ(Thousands(-123'456), "-123,456");
  EXPECT_EQ(Thousands(std::numeric_limits<int64_t>::min()),
            "-9,223,372,036,854,775,808");
}

TEST(PlanNumbers, Scientific) {
  EXPECT_EQ(Scientific(7.912e18), "7.91e18");
  EXPECT_EQ(Scientific(0.5), "5.00e-01");
}

TEST(PlanNumbers, Count) {
  EXPECT_EQ(Count(1, "run"), "1 run");
  EXPECT_EQ(Count(0, "run"), "0 runs");
  EXPECT_EQ(Count(2, "corpus", "corpora"), "2 corpora");
  EXPECT_EQ(Count(1200, "run"), "1,200 runs");
}

TEST(PlanNumbers, Amount) {
  EXPECT_EQ(Amount(0.0721), "0.072");
  EXPECT_EQ(Amount(7.44), "7.4");
  EXPECT_EQ(Amount(12.6), "13");
  EXPECT_EQ(Amount(4051.8), "4,052");
}

}  // namespace
}  // namespace softmoe::experiments
