// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Shape {
  int64_t num_tokens, d_model, vocab_size;
};
const Shape kShapes[] = {{1, 1, 1},    {7, 5, 3},     {100, 16, 300},
                         {257, 33, 9}, {64, 64, 100}, {0, 8, 5}};

// Uneven ids: low ones are frequent, some never occur.
std::vector<int32_t> Ids(const Shape& s) {
  std::vector<int32_t> ids;
  for (float u : RandomFloats(s.num_tokens, 1)) {
    ids.push_back(
        static_cast<int32_t>(u * u * static_cast<float>(s.vocab_size)));
    if (ids.back() >= s.vocab_size) ids.back() = 0;
  }
  return ids;
}

TEST(Embedding, ForwardCopiesRows) {
  for (const Shape& s : kShapes) {
    const auto ids = Ids(s);
    const auto table = RandomFloats(s.vocab_size * s.d_model, 2);
    const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
      Guarded out(s.num_tokens * s.d_model);
      EmbeddingForward(
          {s.num_tokens, s.d_model, ids.data(), table.data(), out.data()},
          pool);
      return std::vector<std::vector<float>>{out.Take()};
    });
    for (int64_t t = 0; t < s.num_tokens; ++t) {
      for (int64_t i = 0; i < s.d_model; ++i) {
        EXPECT_EQ(got[0][t * s.d_model + i], table[ids[t] * s.d_model + i]);
      }
    }
  }
}

// A table of a little more than 2^32 elements, all of it mere address space but
// two rows. Row 3 is where an index of 32 bits would look for the last one.
TEST(Embedding, ForwardFindsRowsBeyond32Bits) {
  constexpr int64_t kWidth = 1024, kRows = (int64_t{1} << 22) + 4;
  constexpr size_t kBytes = kRows * kWidth * sizeof(float);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for 17 GB here";
  float* table = static_cast<float*>(memory);
  const std::vector<int32_t> ids = {kRows - 1, 3};
  for (const int32_t id : ids) {
    std::fill_n(table + id * kWidth, kWidth, static_cast<float>(id));
  }
  const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
    Guarded out(2 * kWidth);
    EmbeddingForward({2, kWidth, ids.data(), table, out.data()}, pool);
    return std::vector<std::vector<float>>{out.Take()};
  });
  for (int64_t t = 0; t < 2; ++t) {
    EXPECT_EQ(got[0][t * kWidth], static_cast<float>(ids[t]));
    EXPECT_EQ(got[0][(t + 1) * kWidth - 1], static_cast<float>(ids[t]));
  }
  ::munmap(memory, kBytes);
}

// The order of the sum is part of the interface (ascending tokens), so the
// result is exact: the same additions, in float.
TEST(Embedding, BackwardSumsTokensInAscendingOrder) {
  for (const Shape& s : kShapes) {
    const auto ids = Ids(s);
    const auto d_out = RandomFloats(s.num_tokens * s.d_model, 3);
    const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
      Guarded d_table(s.vocab_size * s.d_model);
      std::vector<int32_t> scratch(s.num_tokens + s.vocab_size + 2, -7);
      EmbeddingBackward({s.num_tokens, s.d_model, s.vocab_size, ids.data(),
                         d_out.data(), d_table.data(), scratch.data()},
                        pool);
      EXPECT_EQ(scratch.back(), -7);
      return std::vector<std::vector<float>>{d_table.Take()};
    });
    std::vector<float> expected(s.vocab_size * s.d_model, 0.0f);
    for (int64_t t = 0; t < s.num_tokens; ++t) {
      for (int64_t i = 0; i < s.d_model; ++i) {
        expected[ids[t] * s.d_model + i] += d_out[t * s.d_model + i];
      }
    }
    EXPECT_EQ(got[0], expected);
  }
}

// <E(table), v> = <table, E^T v>, exactly, over small integers.
TEST(Embedding, BackwardIsTheAdjoint) {
  const Shape s = {90, 12, 40};
  const auto ids = Ids(s);
  const auto table = SmallIntegers(s.vocab_size * s.d_model, 4);
  const auto v = SmallIntegers(s.num_tokens * s.d_model, 5);
  std::vector<float> out(v.size()), d_table(table.size());
  std::vector<int32_t> scratch(s.num_tokens + s.vocab_size + 1);
  ThreadPool pool(2);
  EmbeddingForward(
      {s.num_tokens, s.d_model, ids.data(), table.data(), out.data()}, pool);
  EmbeddingBackward({s.num_tokens, s.d_model, s.vocab_size, ids.data(),
                     v.data(), d_table.data(), scratch.data()},
                    pool);
  double left = 0, right = 0;
  for (size_t i = 0; i < out.size(); ++i) left += out[i] * v[i];
  for (size_t i = 0; i < table.size(); ++i) right += table[i] * d_table[i];
  EXPECT_EQ(left, right);
  EXPECT_NE(left, 0);
}

}  // namespace
}  // namespace softmoe::kernels
