// SPDX-License-Identifier: Apache-2.0
#include "core/testing/random_test_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace softmoe {
namespace {

TEST(RandomTestData, IsTheSameForTheSameNameAlone) {
  EXPECT_EQ(NormalFloats(9, 1, 2), NormalFloats(9, 1, 2));
  EXPECT_NE(NormalFloats(9, 1, 2), NormalFloats(9, 1, 3));
  EXPECT_NE(NormalFloats(9, 1, 2), NormalFloats(9, 2, 2));
  // A longer draw begins with the shorter one.
  EXPECT_EQ(RandomIds(1, 1000, 1, 2)[0], RandomIds(9, 1000, 1, 2)[0]);
}

TEST(RandomTestData, HasTheRangesThatItPromises) {
  for (const int32_t id : RandomIds(1000, 7, 1, 2)) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 7);
  }
  const auto plain = NormalFloats(9, 1, 2), scaled = NormalFloats(9, 1, 2, 4);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled[i], 4 * plain[i]);
  std::set<int> binades;
  for (const float x : FloatsOfManyBinades(1000, {.seed = 1})) {
    EXPECT_LT(std::abs(x), 0x1p14);
    binades.insert(std::ilogb(x));
  }
  EXPECT_GE(binades.size(), 16u);
}

TEST(Draws, StayWithinTheirEnds) {
  Draws draws(3);
  std::set<int64_t> integers;
  for (int i = 0; i < 100; ++i) {
    integers.insert(draws.Integer(-1, 1));
    const double uniform = draws.Uniform();
    EXPECT_GT(uniform, 0);
    EXPECT_LT(uniform, 1);
  }
  EXPECT_EQ(integers, (std::set<int64_t>{-1, 0, 1}));
}

}  // namespace
}  // namespace softmoe
