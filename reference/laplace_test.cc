// SPDX-License-Identifier: Apache-2.0
#include "reference/laplace.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/testing/bounded.h"

namespace softmoe::reference {
namespace {

// exp is within 1 ulp; halving is exact; 1 - y rounds once.
TEST(LaplaceCdf, HasTheValuesOfTheDefinition) {
  EXPECT_EQ(LaplaceCdf(0), 0.5);
  EXPECT_EQ(LaplaceCdf(-0.0), 0.5);
  // e^-1/2 and 1 - e^-1/2.
  EXPECT_NEAR(LaplaceCdf(-1), 0.18393972058572116, 2 * kDoubleUnit);
  EXPECT_NEAR(LaplaceCdf(1), 0.81606027941427884, 2 * kDoubleUnit);
}

TEST(LaplaceCdf, IsTotal) {
  EXPECT_EQ(LaplaceCdf(-HUGE_VAL), 0);
  EXPECT_EQ(LaplaceCdf(HUGE_VAL), 1);
  EXPECT_EQ(LaplaceCdf(-1e308), 0);
  EXPECT_EQ(LaplaceCdf(1e308), 1);
  EXPECT_TRUE(std::isnan(LaplaceCdf(std::nan(""))));
  EXPECT_EQ(LaplacePdf(HUGE_VAL), 0);
  EXPECT_EQ(LaplacePdf(-HUGE_VAL), 0);
}

TEST(LaplaceCdf, IsSymmetricAndItsTailIsItsDensity) {
  for (double u = -40; u <= 40; u += 0.37) {
    EXPECT_EQ(LaplaceCdf(u) + LaplaceCdf(-u), 1) << u;
    EXPECT_EQ(LaplacePdf(u), LaplacePdf(-u)) << u;
    // f = min(F, 1 - F): exactly on the lower side, and on the upper side to
    // the rounding of 1 - e^-u/2.
    EXPECT_EQ(LaplacePdf(u), LaplaceCdf(-std::abs(u))) << u;
    EXPECT_NEAR(LaplacePdf(u), 1 - LaplaceCdf(std::abs(u)), kDoubleUnit) << u;
  }
}

// A central difference of step h errs by h^2/6 max|F'''| <= h^2/12 and by the
// rounding of two values <= 1, each at most 2 kDoubleUnit, over 2h.
TEST(LaplacePdf, IsTheDerivativeAwayFromTheKink) {
  const double h = 0x1p-17;
  const double bound = h * h / 12 + 2 * kDoubleUnit / h;
  for (double u = -10.25; u <= 10.25; u += 0.5) {
    const double slope = (LaplaceCdf(u + h) - LaplaceCdf(u - h)) / (2 * h);
    EXPECT_NEAR(LaplacePdf(u), slope, bound) << u;
  }
}

// At 0 the second derivative jumps from 1/2 to -1/2, yet the first is
// continuous: the central difference errs by h/4, and no more.
TEST(LaplacePdf, IsContinuousAtTheKink) {
  const double h = 0x1p-10;
  const double slope = (LaplaceCdf(h) - LaplaceCdf(-h)) / (2 * h);
  EXPECT_NEAR(LaplacePdf(0) - slope, h / 4, h * h);
}

}  // namespace
}  // namespace softmoe::reference
