// SPDX-License-Identifier: Apache-2.0
//
// Sums as tensor cores form them; planted_product_bugs.cu tests all other
// orders.
#include "kernels/simt/device/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace softmoe::simt {
namespace {

std::vector<uint16_t> ToBf16(const std::vector<float>& numbers) {
  std::vector<uint16_t> result;
  for (const float x : numbers) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    EXPECT_EQ(bits & 0xffff, 0u) << x << " is no bf16";
    result.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return result;
}

// The sum of a[i] b[i].
float OnTensorCores(const std::vector<float>& a, const std::vector<float>& b,
                    uint64_t order = 1) {
  const auto a_bits = ToBf16(a), b_bits = ToBf16(b);
  const auto k = static_cast<int64_t>(a.size());
  float d = NAN;
  Product product = {};
  product.a = {.bf16 = true,
               .row_major = true,
               .rows = 1,
               .cols = k,
               .ld = k,
               .batch = 1,
               .stride = 0};
  product.b = {.bf16 = true,
               .row_major = true,
               .rows = k,
               .cols = 1,
               .ld = 1,
               .batch = 1,
               .stride = 0};
  product.c = product.d = {.bf16 = false,
                           .row_major = true,
                           .rows = 1,
                           .cols = 1,
                           .ld = 1,
                           .batch = 1,
                           .stride = 0};
  product.alpha = 1;
  product.order = order;
  product.on_tensor_cores = true;
  product.a_data = reinterpret_cast<const char*>(a_bits.data());
  product.b_data = reinterpret_cast<const char*>(b_bits.data());
  product.c_data = product.d_data = reinterpret_cast<char*>(&d);
  ComputeProduct(product);
  return d;
}

// The sum of 1 * 1 and, from place `first` on, `count` products 1 * x.
float OneAnd(size_t count, float x, size_t first = 1, uint64_t order = 1) {
  std::vector<float> b(first + count, 0.0f);
  b[0] = 1;
  for (size_t i = 0; i < count; ++i) b[first + i] = x;
  return OnTensorCores(std::vector<float>(b.size(), 1.0f), b, order);
}

TEST(TensorCores, CutOffWhatAFloatDoesNotHold) {
  EXPECT_EQ(OneAnd(1, 0x1p-23f), 1 + 0x1p-23f);
  EXPECT_EQ(OneAnd(1, 0x1.8p-24f), 1.0f);  // rounded, it would be 1 + 2^-23
  EXPECT_EQ(-OnTensorCores({-1, -1}, {1, 0x1.8p-24f}), 1.0f);
  EXPECT_EQ(OneAnd(1, -0x1p-25f), 1 - 0x1p-24f);  // and here 1
}

TEST(TensorCores, AlignProductsBeforeTheyAddThem) {
  // Each is below the last digit, but not all together.
  EXPECT_EQ(OneAnd(15, 0x1p-26f), 1.0f);
  EXPECT_EQ(OneAnd(15, -0x1p-26f), 1.0f);
  // Each is one unit of the last digit.
  EXPECT_EQ(OneAnd(15, 0x1p-25f), 1 + 3 * 0x1p-23f);
  // The product 1.5 * 1.5 has its point where 1 * 1 has it.
  EXPECT_EQ(OnTensorCores({1.5f, 1, 1, 1}, {1.5f, -1.25f, -0.75f, 0x1p-25f}),
            0.25f + 0x1p-25f);
}

// The first part holds the 1 and one of four digits, the second the other
// three. Each part loses its digits to the 1, unless the second comes first:
// then the four add up to a digit that a float holds.
TEST(TensorCores, AddPartsOfSixteenInAnyOrder) {
  EXPECT_EQ(OneAnd(8, 0x1p-25f, 8), 1 + 2 * 0x1p-23f);
  int lost = 0, kept = 0;
  for (uint64_t order = 1; order <= 20; ++order) {
    EXPECT_EQ(OneAnd(4, 0x1p-25f, 16, order), 1 + 0x1p-23f);
    const float sum = OneAnd(4, 0x1p-25f, 15, order);
    lost += sum == 1.0f;
    kept += sum == 1 + 0x1p-23f;
  }
  EXPECT_EQ(lost + kept, 20);
  EXPECT_GT(lost, 0);
  EXPECT_GT(kept, 0);
}

TEST(TensorCores, KeepWhatIsSmallOrNoNumber) {
  const float tiny = 0x1p-126f;
  EXPECT_EQ(OnTensorCores({tiny, 0}, {1, 5}), tiny);
  EXPECT_EQ(OnTensorCores({0, 0}, {3, 5}), 0.0f);
  EXPECT_EQ(OnTensorCores({0x1p100f}, {0x1p100f}), INFINITY);
  EXPECT_EQ(OnTensorCores({INFINITY, 1}, {1, 1}), INFINITY);
  EXPECT_TRUE(std::isnan(OnTensorCores({INFINITY, 1}, {0, 1})));
}

}  // namespace
}  // namespace softmoe::simt
