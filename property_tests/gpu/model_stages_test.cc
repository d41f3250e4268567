// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "property_tests/gpu/stage_bodies.h"

namespace softmoe::gpu {
namespace {

using Floats = std::vector<float>;

TEST(BitDifference, NamesHowManyAndTheFirst) {
  const Floats x = {1, 2, 3, 4};
  EXPECT_EQ(BitDifference("x", x, x), "");
  EXPECT_EQ(BitDifference("x", Floats(), Floats()), "");
  EXPECT_EQ(BitDifference("x", Floats{1, 2.5f, 3, 5}, x),
            "x: 2 of 4 differ in bits, first [1]: 2.5 instead of 2; ");
  EXPECT_EQ(BitDifference("x", Floats{1, 2, 3}, x),
            "x: 3 numbers instead of 4; ");
}

TEST(BitDifference, LooksAtBits) {
  EXPECT_EQ(BitDifference("x", Floats{NAN}, Floats{NAN}), "");
  EXPECT_NE(BitDifference("x", Floats{NAN}, Floats{0}), "");
  EXPECT_NE(BitDifference("x", Floats{-0.0f}, Floats{0}), "");
  EXPECT_NE(BitDifference("x", Floats{std::nextafter(1.0f, 2.0f)}, Floats{1}),
            "");
}

}  // namespace
}  // namespace softmoe::gpu
