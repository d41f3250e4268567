// SPDX-License-Identifier: Apache-2.0
//
// Every scalar function of the kernels at every one of the 2^16 bf16 numbers,
// NaN, infinities and subnormal numbers included, at every ISA level: within
// the error that the formula's operations allow (bounded.h), and without a bias
// in its errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/testing/bounded.h"
#include "kernels/testing/vector_math_probe.h"

namespace softmoe::kernels {
namespace {

using Bounded = BoundedNumber<FloatRounding>;
constexpr double kFlushed = FloatRounding::kUnderflow;

constexpr int kCount = 1 << 16;

const std::vector<float>& EveryBf16() {
  static const std::vector<float> all = [] {
    std::vector<float> numbers(kCount);
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint32_t bits = i << 16;
      std::memcpy(&numbers[i], &bits, sizeof(bits));
    }
    return numbers;
  }();
  return all;
}

class Bf16Exhaustive : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!IsaAvailable(GetParam())) GTEST_SKIP() << "this CPU lacks the level";
  }

  // function(x) for every bf16 number x.
  std::vector<float> All(ProbeFunction function) {
    std::vector<float> y(kCount, -77.0f);
    const ProbeArgs args{function, kCount, EveryBf16().data(), y.data()};
    GetParam() == Isa::kV4 ? isa_v4::Probe(args, pool_)
                           : isa_v3::Probe(args, pool_);
    return y;
  }

  // Every result at a finite x is within the error of exact(x), and the bias,
  // the mean of (got - value)/(u |value|) over the x that `averaged` admits, is
  // within a quarter: half of what rounding by truncation would show.
  template <typename Exact, typename Averaged>
  void Expect(ProbeFunction function, const Exact& exact,
              const Averaged& averaged) {
    const std::vector<float> y = All(function);
    double total = 0;
    int finite = 0, counted = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = EveryBf16()[i], got = y[i];
      if (!std::isfinite(x)) continue;
      const Bounded wanted = exact(x);
      ++finite;
      if (std::isnan(wanted.value)) {
        EXPECT_TRUE(std::isnan(got)) << "at " << x << ": " << got;
        continue;
      }
      if (std::isinf(wanted.value)) {
        EXPECT_EQ(got, wanted.value) << "at " << x;
        continue;
      }
      EXPECT_TRUE(std::abs(got - wanted.value) <= wanted.error)
          << "at " << x << ": " << got << " instead of " << wanted.value
          << " +- " << wanted.error;
      if (!averaged(x)) continue;
      total += (got - wanted.value) / (kFloatUnit * std::abs(wanted.value));
      ++counted;
    }
    EXPECT_EQ(finite, 2 * 0x7f80);
    ASSERT_GT(counted, 100);
    EXPECT_LE(std::abs(total / counted), 0.25) << counted << " results";
  }

  void ExpectNanForNan(ProbeFunction function) {
    const std::vector<float> y = All(function);
    for (int i = 0; i < kCount; ++i) {
      if (std::isnan(EveryBf16()[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << std::hex << i;
      }
    }
  }

  float At(ProbeFunction function, uint32_t bf16) {
    return All(function)[bf16];
  }

  ThreadPool pool_{1};
};

INSTANTIATE_TEST_SUITE_P(Levels, Bf16Exhaustive,
                         testing::Values(Isa::kV3, Isa::kV4),
                         [](const auto& info) { return IsaName(info.param); });

constexpr uint32_t kPlusInfinity = 0x7f80, kMinusInfinity = 0xff80;

// 1 ulp is at most 2 u of the value; below the smallest normal number of the
// documented range the result may be 0.
Bounded ExactExp(double x) {
  const double value = std::exp(x);
  if (value > std::numeric_limits<float>::max()) return Bounded(HUGE_VAL);
  return {value, 2 * kFloatUnit * value + (x < -86.98 ? kFlushed : 0)};
}

Bounded ExactSigmoid(double z) {
  // Beyond these the exponential is 0 or infinite: the quotient is 1 or 0.
  if (z > 87.3) return Bounded(1, 0);
  if (z < -88.72) return {std::exp(std::max(z, -700.0)), kFlushed};
  Bounded s = Bounded(1) / (Bounded(1) + exp(Bounded(-z)));
  s.error += kFlushed;
  return s;
}

TEST_P(Bf16Exhaustive, Exp) {
  Expect(ProbeFunction::kExp, ExactExp,
         [](double x) { return x > -86 && x < 88 && std::abs(x) > 1e-3; });
  ExpectNanForNan(ProbeFunction::kExp);
  EXPECT_EQ(At(ProbeFunction::kExp, kPlusInfinity), HUGE_VAL);
  EXPECT_EQ(At(ProbeFunction::kExp, kMinusInfinity), 0.0f);
}

TEST_P(Bf16Exhaustive, Log) {
  Expect(
      ProbeFunction::kLog,
      [](double x) {
        if (x < 0) return Bounded(std::numeric_limits<double>::quiet_NaN());
        if (x == 0) return Bounded(-HUGE_VAL);
        return Bounded(std::log(x), 2 * kFloatUnit * std::abs(std::log(x)));
      },
      [](double x) { return x > 0 && x != 1; });
  ExpectNanForNan(ProbeFunction::kLog);
  EXPECT_EQ(At(ProbeFunction::kLog, kPlusInfinity), HUGE_VAL);
}

TEST_P(Bf16Exhaustive, Sigmoid) {
  Expect(ProbeFunction::kSigmoid, ExactSigmoid,
         [](double x) { return std::abs(x) > 1e-3 && std::abs(x) < 16; });
  ExpectNanForNan(ProbeFunction::kSigmoid);
  EXPECT_EQ(At(ProbeFunction::kSigmoid, kPlusInfinity), 1.0f);
  EXPECT_EQ(At(ProbeFunction::kSigmoid, kMinusInfinity), 0.0f);
}

TEST_P(Bf16Exhaustive, Silu) {
  // The products with up = 1 and row_gate = 1 are exact. Subnormal products
  // lose half of the smallest one.
  Expect(
      ProbeFunction::kSilu,
      [](double z) {
        Bounded y = Bounded(z) * ExactSigmoid(z);
        y.error += 0x1p-149;
        return y;
      },
      [](double x) { return std::abs(x) > 1e-3 && std::abs(x) < 16; });
  ExpectNanForNan(ProbeFunction::kSilu);
}

TEST_P(Bf16Exhaustive, SiluSlope) {
  Expect(
      ProbeFunction::kSiluSlope,
      [](double z) {
        const Bounded s = ExactSigmoid(z), one(1);
        Bounded slope = s * (one + Bounded(z) * (one - s));
        // A flushed s costs z times kFlushed.
        slope.error += kFlushed * (std::abs(z) < 1e3 ? 1e3 : 0);
        return z < -1e3 ? Bounded(0, kFlushed) : slope;
      },
      // Keeps away from the zero of the slope at -1.278.
      [](double x) { return x > 1e-3 && x < 16; });
  ExpectNanForNan(ProbeFunction::kSiluSlope);
}

TEST_P(Bf16Exhaustive, LaplaceDistribution) {
  Expect(
      ProbeFunction::kLaplaceCdf,
      [](double u) {
        const Bounded half =
            Bounded(0.5) * ExactExp(-std::abs(u));  // halving is exact
        return u > 0 ? Bounded(1) - half : half;
      },
      [](double x) { return std::abs(x) > 1e-3 && std::abs(x) < 16; });
  ExpectNanForNan(ProbeFunction::kLaplaceCdf);
  EXPECT_EQ(At(ProbeFunction::kLaplaceCdf, kPlusInfinity), 1.0f);
  EXPECT_EQ(At(ProbeFunction::kLaplaceCdf, kMinusInfinity), 0.0f);
}

}  // namespace
}  // namespace softmoe::kernels
