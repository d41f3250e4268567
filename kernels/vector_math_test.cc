// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/testing/vector_math_probe.h"

namespace softmoe::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class VectorMath : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this CPU lacks the level";
  }

  std::vector<float> Run(ProbeFunction function, const std::vector<float>& x) {
    std::vector<float> y(x.size(), -77.0f);
    const ProbeArgs args{function, static_cast<int64_t>(x.size()), x.data(),
                         y.data()};
    if (GetParam() == Isa::kV4) {
      isa_v4::Probe(args, pool_);
    } else {
      isa_v3::Probe(args, pool_);
    }
    return y;
  }

  int width() const { return ProbeWidth(GetParam()); }
  ThreadPool pool_{1};
};

INSTANTIATE_TEST_SUITE_P(Levels, VectorMath,
                         testing::Values(Isa::kV3, Isa::kV4),
                         [](const auto& info) { return IsaName(info.param); });

// Error of `got` in units of the last place of the exact value.
double UlpError(float got, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(static_cast<double>(got) - exact) / ulp;
}

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Every `step`-th float from `low` to `high`, both of one sign, low nearer 0.
std::vector<float> Sweep(float low, float high, uint32_t step) {
  uint32_t from, to;
  std::memcpy(&from, &low, sizeof(from));
  std::memcpy(&to, &high, sizeof(to));
  std::vector<float> x;
  for (uint64_t bits = from; bits <= to; bits += step) {
    x.push_back(FromBits(static_cast<uint32_t>(bits)));
  }
  return x;
}

double WorstUlp(const std::vector<float>& x, const std::vector<float>& y,
                const std::function<double(double)>& exact) {
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, UlpError(y[i], exact(x[i])));
  }
  return worst;
}

// std::exp and std::log of a double are within 1 ulp of double, 2^-29 ulp of
// float: exact for this purpose.
TEST_P(VectorMath, ExpIsWithinOneUlpOverItsRange) {
  double (*exact)(double) = std::exp;
  for (const auto& x : {Sweep(1e-9f, 88.72f, 499), Sweep(-1e-9f, -86.98f, 499),
                        Sweep(80.0f, 88.722f, 3)}) {
    ASSERT_GT(x.size(), 100000u);
    EXPECT_LE(WorstUlp(x, Run(ProbeFunction::kExp, x), exact), 1.0);
  }
}

// So kernels' weights keep the order of their scores (SPEC.md 1.5, law 2) only
// to within 2 ulp of e^x.
TEST_P(VectorMath, ExpIsNotMonotone) {
  const auto y =
      Run(ProbeFunction::kExp, {-0.12468156963586807f, -0.12468157708644867f});
  EXPECT_LT(y[0], y[1]);
}

TEST_P(VectorMath, LogIsWithinOneUlpOverItsRange) {
  double (*exact)(double) = std::log;
  for (const auto& x :
       {Sweep(FromBits(1), std::numeric_limits<float>::max(), 4999),
        Sweep(0.5f, 2.0f, 61), Sweep(0.99f, 1.01f, 1)}) {
    ASSERT_GT(x.size(), 100000u);
    EXPECT_LE(WorstUlp(x, Run(ProbeFunction::kLog, x), exact), 1.0);
  }
}

TEST_P(VectorMath, ExpAtSpecialArguments) {
  const auto y = Run(ProbeFunction::kExp,
                     {0.0f, -0.0f, -kInfinity, kInfinity, kNan, 88.73f, 1e30f,
                      -87.0f, -88.0f, -104.0f, -1e30f, 88.722f, -86.98f});
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], kInfinity);
  EXPECT_EQ(y[6], kInfinity);
  for (int i : {7, 8, 9, 10}) EXPECT_EQ(y[i], 0.0f) << i;
  EXPECT_TRUE(std::isfinite(y[11]));
  EXPECT_GT(y[12], 0.0f);
}

TEST_P(VectorMath, LogAtSpecialArguments) {
  const auto y = Run(ProbeFunction::kLog, {1.0f, 0.0f, -0.0f, kInfinity, kNan,
                                           -1.0f, -kInfinity, -1e-40f});
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], -kInfinity);
  EXPECT_EQ(y[2], -kInfinity);
  EXPECT_EQ(y[3], kInfinity);
  for (int i : {4, 5, 6, 7}) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST_P(VectorMath, ScalarGivesTheBitsOfALane) {
  auto x = Sweep(1e-30f, 200.0f, 9973);
  for (float special : {0.0f, kInfinity, 1e-40f}) x.push_back(special);
  EXPECT_EQ(Run(ProbeFunction::kLog, x), Run(ProbeFunction::kLogScalar, x));
  const size_t count = x.size();
  for (size_t i = 0; i < count; ++i) x.push_back(-x[i]);
  EXPECT_EQ(Run(ProbeFunction::kExp, x), Run(ProbeFunction::kExpScalar, x));
}

TEST_P(VectorMath, TransposeMovesEveryElement) {
  const int w = width();
  std::vector<float> x(w * w);
  std::iota(x.begin(), x.end(), 1.0f);
  const auto y = Run(ProbeFunction::kTranspose, x);
  for (int i = 0; i < w; ++i) {
    for (int j = 0; j < w; ++j) EXPECT_EQ(y[i * w + j], x[j * w + i]);
  }
}

TEST_P(VectorMath, ReduceSumAddsByHalves) {
  std::vector<float> x(16);
  for (int i = 0; i < 16; ++i) x[i] = std::ldexp(1.0f + i * 0.37f, 3 * (i % 5));
  std::vector<float> lanes = x;
  for (int n = 8; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) lanes[i] += lanes[i + n];
  }
  EXPECT_EQ(Run(ProbeFunction::kReduceSum16, x)[0], lanes[0]);
}

TEST_P(VectorMath, ReduceMaxFindsEveryLane) {
  for (int lane = 0; lane < width(); ++lane) {
    std::vector<float> x(width(), -5.0f);
    x[lane] = -2.0f;
    EXPECT_EQ(Run(ProbeFunction::kReduceMax, x)[0], -2.0f);
  }
}

TEST_P(VectorMath, PartialTailsTouchNothingPastTheEnd) {
  for (int size = 0; size <= 2 * width() + 1; ++size) {
    std::vector<float> x(size + 40, 9.0f), y(size + 40, -1.0f);
    std::iota(x.begin(), x.begin() + size, 1.0f);
    const ProbeArgs args{ProbeFunction::kCopy, size, x.data(), y.data()};
    if (GetParam() == Isa::kV4) {
      isa_v4::Probe(args, pool_);
    } else {
      isa_v3::Probe(args, pool_);
    }
    for (int i = 0; i < size + 40; ++i) {
      EXPECT_EQ(y[i], i < size ? x[i] : -1.0f) << size << " " << i;
    }
  }
}

TEST_P(VectorMath, MinAndMaxReturnTheSecondOperandForNan) {
  const auto low = Run(ProbeFunction::kMin, {kNan, -1.0f, 1.0f});
  const auto high = Run(ProbeFunction::kMax, {kNan, -1.0f, 1.0f});
  EXPECT_EQ(low, (std::vector<float>{0.0f, -1.0f, 0.0f}));
  EXPECT_EQ(high, (std::vector<float>{0.0f, 0.0f, 1.0f}));
}

TEST_P(VectorMath, MasksSelectAndCount) {
  std::vector<float> x(width());
  uint32_t expected = 0;
  for (int i = 0; i < width(); ++i) {
    x[i] = i % 3 == 0 ? -1.0f - i : 1.0f + i;
    if (i % 3 == 0) expected |= 1u << i;
  }
  EXPECT_EQ(Run(ProbeFunction::kBitsOfLess, x)[0],
            static_cast<float>(expected));
  const auto y = Run(ProbeFunction::kSelectNotLess, x);
  for (int i = 0; i < width(); ++i) EXPECT_EQ(y[i], std::abs(x[i]));
}

TEST(VectorMathLevels, GiveTheSameBits) {
  if (!IsaAvailable(Isa::kV4)) GTEST_SKIP() << "this CPU lacks v4";
  ThreadPool pool(1);
  auto x = Sweep(1e-40f, 150.0f, 4999);
  const size_t count = x.size();
  for (size_t i = 0; i < count; ++i) x.push_back(-x[i]);
  x.resize(x.size() / 16 * 16);
  for (auto function : {ProbeFunction::kExp, ProbeFunction::kLog,
                        ProbeFunction::kReduceSum16}) {
    std::vector<float> narrow(x.size()), wide(x.size());
    isa_v3::Probe(
        {function, static_cast<int64_t>(x.size()), x.data(), narrow.data()},
        pool);
    isa_v4::Probe(
        {function, static_cast<int64_t>(x.size()), x.data(), wide.data()},
        pool);
    EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), 4 * x.size()), 0);
  }
}

}  // namespace
}  // namespace softmoe::kernels
