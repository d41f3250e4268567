// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Case {
  int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
  int64_t extra = 0;  // added to every leading dimension
};

struct Data {
  Case shape;
  std::vector<float> a, b, c;
  int64_t lda, ldb, ldc;

  template <typename Make>
  Data(const Case& s, Make make) : shape(s) {
    lda = (s.transpose_a ? s.m : s.k) + s.extra;
    ldb = (s.transpose_b ? s.k : s.n) + s.extra;
    ldc = s.n + s.extra;
    a = make((s.transpose_a ? s.k : s.m) * lda, 1);
    b = make((s.transpose_b ? s.n : s.k) * ldb, 2);
    c = make(s.m * ldc, 3);
  }
  float A(int64_t i, int64_t k) const {
    return shape.transpose_a ? a[k * lda + i] : a[i * lda + k];
  }
  float B(int64_t k, int64_t j) const {
    return shape.transpose_b ? b[j * ldb + k] : b[k * ldb + j];
  }
  // What C must be; columns from n on stay as they are.
  std::vector<Bounded> Expected() const {
    std::vector<Bounded> want(c.size());
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < ldc; ++j) {
        Sum<Bounded> sum;
        if (shape.accumulate || j >= shape.n) sum.Add(c[i * ldc + j]);
        for (int64_t k = 0; j < shape.n && k < shape.k; ++k) {
          // The product inside a fused multiply-add is not rounded.
          sum.Add(Bounded(static_cast<double>(A(i, k)) * B(k, j)));
        }
        want[i * ldc + j] = j < shape.n ? sum.Get() : Bounded(c[i * ldc + j]);
      }
    }
    return want;
  }
  std::vector<float> Run(ThreadPool& pool) const {
    Guarded out(c);
    Gemm({a.data(), b.data(), out.data(), shape.m, shape.n, shape.k, lda, ldb,
          ldc, shape.transpose_a, shape.transpose_b, shape.accumulate},
         pool);
    return out.Take();
  }
};

std::vector<Case> AllTransposes(int64_t m, int64_t n, int64_t k,
                                int64_t extra) {
  std::vector<Case> cases;
  for (int bits = 0; bits < 8; ++bits) {
    cases.push_back(
        {m, n, k, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, extra});
  }
  return cases;
}

// Sizes around the tile (6 x 16, 12 x 32), the k block (256), the column group
// (512), and away from all of them.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  const int64_t sizes[][3] = {{1, 1, 1},     {1, 7, 3},     {3, 17, 33},
                              {13, 31, 16},  {12, 32, 256}, {25, 48, 65},
                              {37, 100, 40}, {64, 64, 64},  {129, 33, 257},
                              {5, 530, 19},  {70, 15, 600}, {6, 16, 0}};
  for (const auto& s : sizes) {
    for (const Case& c : AllTransposes(s[0], s[1], s[2], s[0] % 2 * 3)) {
      cases.push_back(c);
    }
  }
  return cases;
}

std::string Name(const Case& c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n) + "x" +
         std::to_string(c.k) + (c.transpose_a ? " A^T" : "") +
         (c.transpose_b ? " B^T" : "") + (c.accumulate ? " +=" : "");
}

TEST(Gemm, IsWithinTheBoundOfAnOrdinarySumForAllShapes) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Data data(c, RandomFloats);
    const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
      return std::vector<std::vector<float>>{data.Run(pool)};
    });
    ExpectWithin(got[0], data.Expected(), "c");
  }
}

// |sum| <= 9 * 601 < 2^24: every partial sum is exact.
TEST(Gemm, IsExactOnSmallIntegers) {
  ThreadPool pool(4);
  for (const Case& c : Cases()) {
    SCOPED_TRACE(Name(c));
    const Data data(c, SmallIntegers);
    const auto got = data.Run(pool);
    const auto want = data.Expected();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i], want[i].value) << "element " << i;
    }
  }
}

// One chain of fused multiply-adds over ascending k: known to the last bit.
TEST(Gemm, IsTheDocumentedChain) {
  ThreadPool pool(4);
  const Data data({19, 37, 700, false, false, true, 0}, RandomFloats);
  const auto got = data.Run(pool);
  for (int64_t i = 0; i < 19; ++i) {
    for (int64_t j = 0; j < 37; ++j) {
      float chain = data.c[i * 37 + j];
      for (int64_t k = 0; k < 700; ++k) {
        chain = std::fma(data.A(i, k), data.B(k, j), chain);
      }
      ASSERT_EQ(got[i * 37 + j], chain);
    }
  }
}

TEST(Gemm, BitsOfAnElementDoNotDependOnTheOtherRowsAndColumns) {
  ThreadPool pool(3);
  const Data whole({90, 130, 300, false, true, false, 0}, RandomFloats);
  const auto all = whole.Run(pool);
  for (const auto& [row, column] :
       {std::pair<int64_t, int64_t>{0, 0}, {89, 129}, {41, 77}}) {
    Data one({1, 1, 300, false, true, false, 0}, RandomFloats);
    std::copy_n(whole.a.begin() + row * 300, 300, one.a.begin());
    std::copy_n(whole.b.begin() + column * 300, 300, one.b.begin());
    EXPECT_EQ(one.Run(pool)[0], all[row * 130 + column]);
  }
}

TEST(Gemm, NanInOneRowStaysInThatRow) {
  ThreadPool pool(4);
  Data data({30, 40, 50, false, false, false, 0}, RandomFloats);
  data.a[7 * 50 + 3] = std::nanf("");
  const auto got = data.Run(pool);
  for (int64_t i = 0; i < 30 * 40; ++i) {
    EXPECT_EQ(std::isnan(got[i]), i / 40 == 7);
  }
}

}  // namespace
}  // namespace softmoe::kernels
