// SPDX-License-Identifier: Apache-2.0
//
// What the interface promises about bits. verify, op=gemm, tests values and
// everything else.
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/parallel_for.h"
#include "core/profile.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

// One chain of fused multiply-adds over ascending k.
TEST(Gemm, IsTheDocumentedChain) {
  constexpr int64_t kM = 19, kN = 37, kK = 700;
  const std::vector<float> a = RandomFloats(kM * kK, 1);
  const std::vector<float> b = RandomFloats(kK * kN, 2);
  const std::vector<float> before = RandomFloats(kM * kN, 3);
  std::vector<float> c = before;
  ThreadPool pool(4);
  Gemm({.a = a.data(),
        .b = b.data(),
        .c = c.data(),
        .m = kM,
        .n = kN,
        .k = kK,
        .lda = kK,
        .ldb = kN,
        .ldc = kN,
        .accumulate = true},
       pool);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kN; ++j) {
      float chain = before[i * kN + j];
      for (int64_t k = 0; k < kK; ++k) {
        chain = std::fma(a[i * kK + k], b[k * kN + j], chain);
      }
      ASSERT_EQ(c[i * kN + j], chain);
    }
  }
}

// Waking a thread would take longer than 2^16 multiplications.
TEST(Gemm, ASmallProductIsComputedByTheCaller) {
  const auto job_seconds = [](int64_t size) {
    const std::vector<float> a = RandomFloats(size * size, 1);
    std::vector<float> c(a.size());
    ThreadPool pool(2);
    Profile profile;
    BeginOperation("product");
    Gemm({a.data(), a.data(), c.data(), size, size, size, size, size, size},
         pool);
    return profile.Take().at(0).job_seconds;
  };
  EXPECT_EQ(job_seconds(40), 0);
  EXPECT_GT(job_seconds(41), 0);
}

}  // namespace
}  // namespace softmoe::kernels
