// SPDX-License-Identifier: Apache-2.0
#include "core/testing/bits_test_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace softmoe {
namespace {

using Floats = std::vector<float>;

TEST(SameBits, OfNumbersThatEqualityMisjudges) {
  EXPECT_TRUE(SameBits(Floats{NAN, -0.0f}, Floats{NAN, -0.0f}));
  EXPECT_FALSE(SameBits(Floats{0.0f}, Floats{-0.0f}));
  EXPECT_TRUE(SameBits(Floats{}, Floats{}));
  EXPECT_FALSE(SameBits(Floats{1}, Floats{1, 2}));
}

TEST(SameBits, ShowsTheFirstThatDiffers) {
  EXPECT_STREQ(SameBits(Floats{1, 2, 3}, Floats{1, 5, 4}).message(),
               "[1] of 3: 2, not 5");
}

}  // namespace
}  // namespace softmoe
