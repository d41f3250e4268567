// SPDX-License-Identifier: Apache-2.0
//
// What verify, op=embedding, does not prove: a table that is larger than
// memory, and the order of sums.
#include "kernels/embedding.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "kernels/isa.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

// A table of a little more than 2^32 elements, of which all but two rows are
// only address space. A 32-bit index of the last row would find row 3.
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
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    if (!IsaAvailable(isa)) continue;
    SelectIsa(IsaName(isa));
    ThreadPool pool(3);
    std::vector<float> out(2 * kWidth);
    EmbeddingForward({2, kWidth, ids.data(), table, out.data()}, pool);
    for (int64_t t = 0; t < 2; ++t) {
      EXPECT_EQ(out[t * kWidth], static_cast<float>(ids[t]));
      EXPECT_EQ(out[(t + 1) * kWidth - 1], static_cast<float>(ids[t]));
    }
  }
  SelectIsa("");
  ::munmap(memory, kBytes);
}

// Ascending tokens are part of the interface, so the result must equal the same
// additions in float exactly.
TEST(Embedding, BackwardSumsTokensInAscendingOrder) {
  constexpr int64_t kTokens = 257, kWidth = 33, kVocab = 9;
  std::vector<int32_t> ids;
  for (const float u : RandomFloats(kTokens, 1)) {
    ids.push_back(static_cast<int32_t>(u * u * static_cast<float>(kVocab)));
  }
  const auto d_out = RandomFloats(kTokens * kWidth, 3);
  std::vector<float> d_table(kVocab * kWidth), expected(kVocab * kWidth);
  std::vector<int32_t> scratch(kTokens + kVocab + 1);
  ThreadPool pool(3);
  EmbeddingBackward({kTokens, kWidth, kVocab, ids.data(), d_out.data(),
                     d_table.data(), scratch.data()},
                    pool);
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) {
      expected[ids[t] * kWidth + i] += d_out[t * kWidth + i];
    }
  }
  EXPECT_EQ(d_table, expected);
}

}  // namespace
}  // namespace softmoe::kernels
