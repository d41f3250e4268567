// SPDX-License-Identifier: Apache-2.0
//
// The bound of every operation holds for the arithmetic of the machine, and is
// not so wide that it would hold for another operation.
#include "core/testing/bounded.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "core/philox.h"

namespace softmoe {
namespace {

using InFloat = BoundedNumber<FloatRounding>;
using InDouble = BoundedNumber<DoubleRounding>;

// Checks one operation on the computing type, a wider type, and bounds. For
// exact operands the error may be at most twice the unit roundoff of the value,
// plus the underflow.
template <typename Bound, typename Computing, typename Wide>
class Operations {
 public:
  explicit Operations(uint64_t index) {
    const auto words = PhiloxWords({7, RandomStream::kTestData, 31}, index);
    a_ = static_cast<Computing>(NormalsFromWords(words[0], words[1])[0]);
    b_ = static_cast<Computing>(NormalsFromWords(words[2], words[3])[0]);
  }
  void CheckAll() const {
    Check([](auto a, auto b) { return a + b; });
    Check([](auto a, auto b) { return a - b; });
    Check([](auto a, auto b) { return a * b; });
    Check([](auto a, auto b) { return a / b; });
    Check([](auto a, auto) { return -a; });
    Check([](auto a, auto) {
      using std::abs, std::sqrt;
      return sqrt(abs(a));
    });
    Check([](auto a, auto) {
      using std::exp;
      return exp(a);
    });
    Check([](auto a, auto) {
      using std::abs, std::log;
      return log(abs(a));
    });
    // Errors of operands are carried along.
    Check(
        [](auto a, auto b) {
          using std::abs, std::exp, std::log, std::sqrt;
          const auto x = a * b + a, y = abs(a) + b * b;
          return exp(x / y) * log(y) - sqrt(y * y + y) / y;
        },
        200);
  }

 private:
  template <typename F>
  void Check(F f, double widest = 2.5) const {
    const Computing computed = f(a_, b_);
    const Wide exact = f(static_cast<Wide>(a_), static_cast<Wide>(b_));
    const Bound bound = f(Bound(a_), Bound(b_));
    EXPECT_LE(std::abs(static_cast<double>(computed - exact)), bound.error);
    // The value is computed in double.
    EXPECT_LE(std::abs(static_cast<double>(bound.value - exact)),
              std::max(bound.error * 0x1p-20,
                       std::is_same_v<Computing, double> ? bound.error : 0.0));
    EXPECT_LE(bound.error,
              widest * Bound::kRoundoff * (1 + std::abs(bound.value)) +
                  2 * Bound::kUnderflow);
  }

  Computing a_, b_;
};

TEST(BoundedNumber, CoversFloatAndDouble) {
  for (uint64_t i = 0; i < 10000; ++i) {
    Operations<InFloat, float, double>(i).CheckAll();
    Operations<InDouble, double, long double>(i).CheckAll();
  }
}

TEST(BoundedNumber, CoversWhatUnderflows) {
  const float tiny = 0x1p-80f;
  EXPECT_EQ(tiny * tiny, 0);
  EXPECT_GE((InFloat(tiny) * InFloat(tiny)).error, 0x1p-160);
  EXPECT_GE((InFloat(0x1p-130) / InFloat(0x1p20)).error, 0x1p-150);
  EXPECT_GE(exp(InFloat(-100)).error, std::exp(-100.0));
  EXPECT_GE((InDouble(0x1p-600) * InDouble(0x1p-600)).error, 0x1p-1074);
}

TEST(BoundedNumber, AProductWithZeroIsExact) {
  EXPECT_EQ((InFloat(0) * InFloat(3, 1)).error, 0);
  EXPECT_EQ((InFloat(0, 1e-9) * InFloat(3)).error > 3e-9, true);
  EXPECT_EQ((InFloat(0) / InFloat(3, 1)).error, 0);
}

TEST(BoundedNumber, HasNoBoundWhereThereIsNone) {
  EXPECT_EQ((InFloat(1) / InFloat(1, 1)).error, HUGE_VAL);
  EXPECT_EQ(log(InFloat(1, 2)).error, HUGE_VAL);
  // A root has a bound, even at 0.
  EXPECT_EQ(sqrt(InFloat(0, 0.25)).error, 0.5 * (1 + InFloat::kRoundoff));
}

TEST(BoundedNumber, ARootHalvesARelativeError) {
  const InFloat root = sqrt(InFloat(1, 0x1p-20));
  EXPECT_GE(root.error, 1 - std::sqrt(1 - 0x1p-20));
  EXPECT_LE(root.error, 0x1p-21 * (1 + 0x1p-20) + 1.01 * InFloat::kRoundoff);
}

TEST(BoundedSum, CountsTheTermsThatRound) {
  BoundedSum<InFloat> sum;
  for (int i = 0; i < 4; ++i) {
    sum.Add(1);
    sum.Add(0);
  }
  EXPECT_EQ(sum.Get().value, 4);
  EXPECT_EQ(sum.Get().error, 4 * InFloat::kRoundoff * 4);
}

TEST(BoundedSum, OfRandomTermsRoundsAsTheTypeSays) {
  BoundedSum<BoundedNumber<FloatRounding, Roundings::kRandom>> random;
  BoundedSum<InFloat> worst;
  for (int i = 0; i < 1000; ++i) {
    random.Add(1);
    worst.Add(1);
  }
  EXPECT_EQ(random.Get().error, worst.Get(Roundings::kRandom).error);
  EXPECT_LT(random.Get().error, worst.Get().error / 3);
  // Converted to the other kind, a number keeps its error.
  EXPECT_EQ(InFloat(random.Get()).error, random.Get().error);
}

}  // namespace
}  // namespace softmoe
