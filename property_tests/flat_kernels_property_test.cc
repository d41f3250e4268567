// SPDX-License-Identifier: Apache-2.0
//
// Sums of squares, += and casts by CUDA kernels on a simulated device. (For
// sums of squares of generic numbers see verify, op=sum_of_squares.)
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/adamw.h"
#include "kernels/cuda/flat_kernels.h"
#include "property_tests/testing/simulated_case.h"

namespace softmoe::property_tests {
namespace {

using kernels::Bf16;

void ExpectTheSumOfSquaresOfTheCpu(const Floats& x) {
  const int64_t size = static_cast<int64_t>(x.size());
  ExpectTheBitsOfTheCpu(
      kernels::SumOfSquares, kernels::isa_shim::SumOfSquares,
      [&](auto& arrays, const auto& sum) {
        std::vector<double> result(1, NAN);
        std::vector<double> scratch(kernels::SumOfSquaresScratch(size), NAN);
        sum({size, arrays.In(x), arrays.InOut(result), arrays.InOut(scratch)});
        return std::vector<std::vector<double>>{result, scratch};
      });
}

// Within one block the order of additions is the CPU's.
RC_GTEST_PROP(FlatKernels, SumOfSquaresOfABlockHasTheBitsOfTheCpu, ()) {
  const int64_t size =
      *rc::gen::inRange<int64_t>(0, kernels::kSumOfSquaresBlock + 1);
  const double scale = *rc::gen::element(1e-30, 1.0, 1e30);
  ExpectTheSumOfSquaresOfTheCpu(NormalFloats(size, 1, 1, scale));
}

// More blocks than the final sum has threads, with whole numbers: any order
// gives the same bits.
TEST(FlatKernels, SumOfSquaresOfManyBlocksIsExact) {
  for (const int64_t size : {4097, 256 * 4096, 257 * 4096 - 5}) {
    const auto ids = RandomIds(size, 1000, 1, 2);
    ExpectTheSumOfSquaresOfTheCpu(Floats(ids.begin(), ids.end()));
  }
}

RC_GTEST_PROP(FlatKernels, AddHasTheBitsOfTheCpu, ()) {
  const int64_t size = *rc::gen::inRange<int64_t>(0, 700);
  const Floats x = NormalFloats(size, 1, 1);
  const Floats before = NormalFloats(size, 1, 2);
  ExpectTheBitsOfTheCpu(kernels::Add, kernels::isa_shim::Add,
                        [&](auto& arrays, const auto& add) {
                          Floats y = before;
                          add({size, arrays.In(x), arrays.InOut(y)});
                          return std::vector<Floats>{y};
                        });
}

std::vector<Bf16> ToBf16(const Floats& from) {
  return RunInTheSimulator([&] {
           std::vector<Bf16> to(from.size());
           DeviceArrays arrays;
           kernels::isa_shim::CastToBf16({static_cast<int64_t>(from.size()),
                                          arrays.In(from), arrays.InOut(to)},
                                         arrays.stream());
           arrays.TakeBack();
           return std::vector<std::vector<Bf16>>{to};
         })
      .front();
}
Floats ToFloats(const std::vector<Bf16>& from) {
  return RunInTheSimulator([&] {
           Floats to(from.size());
           DeviceArrays arrays;
           kernels::isa_shim::CastToFloat({static_cast<int64_t>(from.size()),
                                           arrays.In(from), arrays.InOut(to)},
                                          arrays.stream());
           arrays.TakeBack();
           return std::vector<Floats>{to};
         })
      .front();
}

uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }

// Every bf16 number, including infinities and NaN, is the upper half of its
// float, and converts back.
TEST(FlatKernels, EveryBf16IsItsFloat) {
  std::vector<Bf16> all(1 << 16);
  for (uint32_t i = 0; i < all.size(); ++i) all[i].bits = i;
  const Floats floats = ToFloats(all);
  for (uint32_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(BitsOf(floats[i]), i << 16);
  }
  const std::vector<Bf16> back = ToBf16(floats);
  for (uint32_t i = 0; i < all.size(); ++i) {
    // NaN becomes a quiet NaN.
    ASSERT_EQ(back[i].bits, std::isnan(floats[i]) ? i | 0x40 : i);
  }
}

// Between all neighbours: near both, near their middle, and at the middle.
TEST(FlatKernels, CastsRoundToTheNearestAndTiesToEven) {
  Floats floats;
  for (uint32_t upper = 0; upper < 1 << 16; ++upper) {
    for (const uint32_t lower : {1, 0x7fff, 0x8000, 0x8001, 0xffff}) {
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  const std::vector<Bf16> rounded = ToBf16(floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    const float x = floats[i];
    const uint32_t got = uint32_t{rounded[i].bits} << 16;
    const float y = std::bit_cast<float>(got);
    ASSERT_EQ(std::signbit(y), std::signbit(x)) << BitsOf(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(y)) << BitsOf(x);
      continue;
    }
    // The neighbours towards zero and away from it; 2^128 follows the largest.
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

}  // namespace
}  // namespace softmoe::property_tests
