// SPDX-License-Identifier: Apache-2.0
//
// Numbers are rounded to the nearest of their type, and stepped to the next.
#include "property_tests/verify/engine/tensor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace softmoe::verify {
namespace {

RC_GTEST_PROP(Tensor, RoundsToTheNearestBf16, ()) {
  const double x = *rc::gen::inRange(-(1 << 30), 1 << 30) *
                   std::ldexp(1.0, *rc::gen::inRange(-60, 20));
  const double got = RoundTo(Dtype::kBf16, x);
  for (const int64_t step : {-1, 1}) {
    const double other = StepBy(Dtype::kBf16, got, step);
    RC_ASSERT(std::abs(got - x) <= std::abs(other - x));
  }
}

// Every bf16 number rounds to itself, and so does any number nearer to it than
// the middle between it and its neighbour, by however little; the middle rounds
// to the even one; NaN and infinities are unchanged.
TEST(Tensor, RoundsToBf16AroundEveryOne) {
  int finite = 0;
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    const double x = std::bit_cast<float>(i << 16);
    const double rounded = RoundTo(Dtype::kBf16, x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(rounded)) << i;
      continue;
    }
    ASSERT_EQ(rounded, x) << i;
    if (std::isinf(x)) continue;
    ++finite;
    // The next number away from zero; for the largest, where it would be.
    const double next = StepBy(Dtype::kBf16, x, i < 0x8000 ? 1 : -1);
    const double gap = std::isinf(next)
                           ? x - StepBy(Dtype::kBf16, x, i < 0x8000 ? -1 : 1)
                           : next - x;
    const double middle = x + gap / 2;
    ASSERT_EQ(RoundTo(Dtype::kBf16, middle), i % 2 == 0 ? x : next) << i;
    ASSERT_EQ(RoundTo(Dtype::kBf16, std::nextafter(middle, 0)), x) << i;
    ASSERT_EQ(RoundTo(Dtype::kBf16, std::nextafter(middle, 2 * middle)), next)
        << i;
  }
  EXPECT_EQ(finite, 2 * 0x7f80);
}

TEST(Tensor, RoundsTiesToEvenAndStepsThroughZero) {
  EXPECT_EQ(RoundTo(Dtype::kBf16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(RoundTo(Dtype::kBf16, 1 + 0x3p-8), 1 + 0x1p-6);
  // A double rounding through float would make a tie of this.
  EXPECT_EQ(RoundTo(Dtype::kBf16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(RoundTo(Dtype::kF32, 1 + 0x1p-24), 1.0);
  EXPECT_EQ(StepBy(Dtype::kF32, 0, 1), 0x1p-149);
  EXPECT_EQ(StepBy(Dtype::kF32, 0, -1), -0x1p-149);
  EXPECT_EQ(StepBy(Dtype::kF32, 1, -1), 1 - 0x1p-24);
  EXPECT_EQ(StepBy(Dtype::kF64, 1, 1), std::nextafter(1.0, 2.0));
  EXPECT_EQ(StepBy(Dtype::kF64, 0x1p-1074, -3), -0x1p-1073);
  EXPECT_EQ(StepBy(Dtype::kF64, -HUGE_VAL, -1), -HUGE_VAL);
  EXPECT_EQ(StepBy(Dtype::kBf16, 1, 2), 1 + 0x1p-6);
  EXPECT_EQ(IndexText({2, 3, 4}, 23), "[1, 2, 3]");
}

}  // namespace
}  // namespace softmoe::verify
