// SPDX-License-Identifier: Apache-2.0
//
// Every bf16 number, and floats between all neighbours, as every backend
// converts them.
#define SOFTMOE_ISA isa_test  // the namespace that bodies are instantiated in
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/simt/scalar.h"

namespace softmoe::kernels {
namespace {

using SOFTMOE_ISA::FloatOf;
using SOFTMOE_ISA::RoundToBf16;

Bf16 OfBits(uint32_t bits) { return {static_cast<uint16_t>(bits)}; }
uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }

// A bf16 number, infinities and NaN included, is the upper half of its float
// and converts back; NaN becomes a quiet NaN.
TEST(Bf16Convert, EveryNumberIsItsFloat) {
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    const float x = FloatOf(OfBits(i));
    ASSERT_EQ(BitsOf(x), i << 16);
    ASSERT_EQ(RoundToBf16(x).bits, std::isnan(x) ? i | 0x40 : i);
  }
}

// Floats near both neighbours, near their middle, and at the middle.
TEST(Bf16Convert, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t upper = 0; upper < 1 << 16; ++upper) {
    for (const uint32_t lower : {1, 0x7fff, 0x8000, 0x8001, 0xffff}) {
      const float x = std::bit_cast<float>(upper << 16 | lower);
      const uint32_t got = uint32_t{RoundToBf16(x).bits} << 16;
      const float y = std::bit_cast<float>(got);
      ASSERT_EQ(std::signbit(y), std::signbit(x)) << BitsOf(x);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(y)) << BitsOf(x);
        continue;
      }
      // The neighbours toward zero and away from it; 2^128 follows the largest.
      const uint32_t down = BitsOf(x) & 0xffff0000, up = down + 0x10000;
      const auto magnitude = [](uint32_t bits) {
        const double value = std::abs(std::bit_cast<float>(bits));
        return std::isinf(value) ? 0x1p128 : value;
      };
      const double below = std::abs(double{x}) - magnitude(down);
      const double above = magnitude(up) - std::abs(double{x});
      const uint32_t even = (down >> 16) % 2 == 0 ? down : up;
      ASSERT_EQ(got, below < above   ? down
                     : above < below ? up
                                     : even)
          << BitsOf(x);
    }
  }
}

}  // namespace
}  // namespace softmoe::kernels
