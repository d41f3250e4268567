// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/testing/bounded.h"

namespace softmoe {
namespace {

// Known answers of Philox4x32-10 (Random123's kat_vectors: all zero).
TEST(Philox, MatchesTheKnownAnswer) {
  RandomKey key;
  key.stream = static_cast<RandomStream>(0);
  const std::array<uint32_t, 4> expected = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                            0x9b00dbd8};
  EXPECT_EQ(PhiloxWords(key, 0), expected);
}

TEST(Philox, EveryPartOfTheAddressMatters) {
  const RandomKey base{7, RandomStream::kTestData, 3, 5};
  const auto words = PhiloxWords(base, 11);
  RandomKey other = base;
  other.seed = 8;
  EXPECT_NE(PhiloxWords(other, 11), words);
  other = base;
  other.seed += uint64_t{1} << 32;
  EXPECT_NE(PhiloxWords(other, 11), words);
  other = base;
  other.stream = RandomStream::kShuffle;
  EXPECT_NE(PhiloxWords(other, 11), words);
  other = base;
  other.step = 4;
  EXPECT_NE(PhiloxWords(other, 11), words);
  other = base;
  other.layer = 6;
  EXPECT_NE(PhiloxWords(other, 11), words);
  EXPECT_NE(PhiloxWords(base, 12), words);
  EXPECT_NE(PhiloxWords(base, 11 + (uint64_t{1} << 32)), words);
}

TEST(Philox, UniformsAreExactInFloat) {
  for (uint32_t word : {0u, 255u, 256u, 0x80000000u, 0xffffffffu}) {
    const double u = UniformFromWord(word);
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
    EXPECT_EQ(static_cast<double>(static_cast<float>(u)), u);
  }
}

// Mean and variance of n draws lie within 6 standard errors: sd(mean) =
// 1/sqrt(n), sd(variance) = sqrt(2/n). The draws are fixed, so is the outcome.
TEST(Philox, NormalsHaveUnitMoments) {
  constexpr int kDraws = 200000;
  const RandomKey key{42};
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws / 4; ++i) {
    const auto w = PhiloxWords(key, i);
    for (const auto& pair :
         {NormalsFromWords(w[0], w[1]), NormalsFromWords(w[2], w[3])}) {
      for (double z : pair) {
        ASSERT_TRUE(std::isfinite(z));
        sum += z;
        squares += z * z;
      }
    }
  }
  EXPECT_LT(std::abs(sum / kDraws), 6 / std::sqrt(kDraws));
  EXPECT_LT(std::abs(squares / kDraws - 1), 6 * std::sqrt(2.0 / kDraws));
}

TEST(Philox, NormalsAreFiniteAtTheExtremes) {
  for (uint32_t word : {0u, 0xffffffffu}) {
    for (double z : NormalsFromWords(word, word)) {
      EXPECT_TRUE(std::isfinite(z));
    }
  }
}

// Near a quarter and three quarters of a turn the cosine is almost 0, so the
// error of the rounded angle is unbounded relative to it; it is one of 9 units
// of 1 (logit-noise-f32/2).
TEST(Philox, NormalsErrByTheirRoundedAngle) {
  constexpr uint32_t kWord = 12345, kQuarter = uint32_t{1} << 30;
  const double radius = NormalsFromWords(kWord, 0)[0];  // its cosine is 1
  const double angle = M_PI * 0x1p-32;  // of half a word, from the axis
  double largest = 0;
  for (const uint32_t quarters : {1u, 3u}) {
    for (const bool beyond : {false, true}) {
      const auto z = NormalsFromWords(kWord, quarters * kQuarter - 1 + beyond);
      const double sign = beyond == (quarters == 3) ? 1 : -1;
      const double exact = sign * radius * std::sin(angle);
      const double error = std::abs(z[0] - exact);
      EXPECT_LE(error, kDoubleUnit * (16 * std::abs(exact) + 9 * radius));
      EXPECT_LE(std::abs(z[1] - (quarters == 1 ? radius : -radius)),
                16 * kDoubleUnit * radius);
      largest = std::max(largest, error / std::abs(exact));
    }
  }
  EXPECT_GT(largest, 16 * kDoubleUnit);
}

// Printed results depend on these draws (experiments/report/power.h).
TEST(Normals, AreTheFirstOfEachBlockOfTheirSequence) {
  Normals normals(/*seed=*/7, /*sequence=*/3);
  for (uint64_t i = 0; i < 4; ++i) {
    const auto words = PhiloxWords({.seed = 7, .step = 3}, i);
    EXPECT_EQ(normals.Next(), NormalsFromWords(words[0], words[1])[0]);
  }
  EXPECT_NE(Normals(7, 4).Next(), Normals(7, 3).Next());
  EXPECT_NE(Normals(8, 3).Next(), Normals(7, 3).Next());
}

}  // namespace
}  // namespace softmoe
