// SPDX-License-Identifier: Apache-2.0
#include "golden/document/decimal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

Decimal D(const char* text) { return Decimal::Parse(text).value(); }

TEST(Decimal, ParsesPlainNumbersOnly) {
  EXPECT_EQ(D("42.5").units(), 425);
  EXPECT_EQ(D("42.5").decimals(), 1);
  EXPECT_EQ(D("-0.05").units(), -5);
  EXPECT_EQ(D("3").decimals(), 0);
  EXPECT_EQ(D("999999999999999999").units(), 999'999'999'999'999'999);
  for (const char* text :
       {"", "-", ".5", "5.", "1e3", "+1", " 1", "1 ", "1,5", "1.2.3", "nan",
        "--1", "1234567890123456789", "0x1"}) {
    EXPECT_FALSE(Decimal::Parse(text)) << text;
  }
}

TEST(Decimal, PrintsWhatItParsed) {
  for (const char* text : {"0", "0.10", "-0.05", "107.74", "-12", "42.5"}) {
    EXPECT_EQ(D(text).Text(), text);
  }
}

TEST(Decimal, ComputesExactly) {
  EXPECT_EQ((D("58.54464") + D("49.2") * D("1.96")).Text(), "154.97664");
  EXPECT_EQ((D("2.78") - D("2.79")).Text(), "-0.01");
  EXPECT_EQ(D("42.5"), D("42.50"));
  EXPECT_LT(D("2.7"), D("2.75"));
  EXPECT_LT(D("-1"), D("0.1"));
  EXPECT_THROW(D("999999999999999999") * D("10"), InternalError);
}

TEST(Decimal, RoundsByTheRule) {
  EXPECT_EQ(D("107.745").Round(2, Rounding::kNearest).Text(), "107.75");
  EXPECT_EQ(D("107.74464").Round(2, Rounding::kNearest).Text(), "107.74");
  EXPECT_EQ(D("-0.125").Round(2, Rounding::kNearest).Text(), "-0.12");
  EXPECT_EQ(D("-0.126").Round(2, Rounding::kNearest).Text(), "-0.13");
  EXPECT_EQ(D("36.509").Round(2, Rounding::kTruncate).Text(), "36.50");
  EXPECT_EQ(D("-36.509").Round(2, Rounding::kTruncate).Text(), "-36.50");
  EXPECT_EQ(D("2.5").Round(3, Rounding::kNearest).Text(), "2.500");
  EXPECT_THROW(D("2.55").Round(1, Rounding::kUnknown), InternalError);
}

// 1170/1838 = 63.6561...: the paper prints 63.65 where it truncates.
TEST(Decimal, QuotientsAreRoundedOnce) {
  EXPECT_EQ(Decimal::Quotient(100 * 1170, 1838, 2, Rounding::kTruncate).Text(),
            "63.65");
  EXPECT_EQ(Decimal::Quotient(100 * 1170, 1838, 2, Rounding::kNearest).Text(),
            "63.66");
  EXPECT_EQ(Decimal::Quotient(1, 8, 2, Rounding::kNearest).Text(), "0.13");
  EXPECT_EQ(Decimal::Quotient(0, 3, 2, Rounding::kNearest).Text(), "0.00");
}

TEST(PrintedInterval, IsHalfAUnitOrAUnit) {
  EXPECT_EQ(PrintedInterval(D("2.78"), Rounding::kNearest),
            (Interval{2.775, 2.785}));
  EXPECT_EQ(PrintedInterval(D("2.78"), Rounding::kTruncate),
            (Interval{2.78, 2.79}));
  EXPECT_EQ(PrintedInterval(D("2.78"), Rounding::kUnknown),
            (Interval{2.775, 2.79}));
  EXPECT_EQ(PrintedInterval(D("42.5"), Rounding::kNearest),
            (Interval{42.45, 42.55}));
  EXPECT_EQ(PrintedInterval(D("-1.5"), Rounding::kTruncate),
            (Interval{-1.6, -1.5}));
  EXPECT_EQ(PrintedInterval(D("0.0"), Rounding::kTruncate),
            (Interval{-0.1, 0.1}));
}

// A number lies in the interval of its print, and the intervals of neighbouring
// prints share at most an end point.
RC_GTEST_PROP(PrintedIntervalProperty, HoldsWhatPrintsSo, ()) {
  const auto units = *rc::gen::inRange<int64_t>(-9'999'999, 9'999'999);
  const int decimals = *rc::gen::inRange(0, 4);
  const Decimal value(units, 4);
  for (Rounding rule : {Rounding::kNearest, Rounding::kTruncate}) {
    const Decimal printed = value.Round(decimals, rule);
    const Interval interval = PrintedInterval(printed, rule);
    const Interval wide = PrintedInterval(printed, Rounding::kUnknown);
    const double point = value.ToDouble();
    RC_ASSERT(interval.low <= point && point <= interval.high);
    RC_ASSERT(wide.low <= interval.low && interval.high <= wide.high);
    const Decimal next = printed + Decimal(1, decimals);
    const Interval above = PrintedInterval(next, rule);
    if (printed.units() > 0) RC_ASSERT(interval.high == above.low);
  }
}

RC_GTEST_PROP(DecimalProperty, ArithmeticAgreesWithIntegers, ()) {
  const auto a = *rc::gen::inRange<int64_t>(-1'000'000, 1'000'000);
  const auto b = *rc::gen::inRange<int64_t>(-1'000'000, 1'000'000);
  const Decimal x(a, 2), y(b, 3);
  RC_ASSERT((x + y) == Decimal(10 * a + b, 3));
  RC_ASSERT((x - y) == Decimal(10 * a - b, 3));
  RC_ASSERT((x * y) == Decimal(a * b, 5));
  RC_ASSERT((x < y) == (10 * a < b));
  RC_ASSERT(Decimal::Parse(x.Text()) == x);
  // Both are the double nearest to a/100.
  RC_ASSERT(x.ToDouble() == static_cast<double>(a) / 100);
}

RC_GTEST_PROP(DecimalProperty, RoundingMovesByAtMostItsUnit, ()) {
  const auto a = *rc::gen::inRange<int64_t>(-1'000'000, 1'000'000);
  const Decimal x(a, 4);
  const Decimal nearest = x.Round(2, Rounding::kNearest);
  const Decimal truncated = x.Round(2, Rounding::kTruncate);
  RC_ASSERT(nearest - x <= Decimal(5, 3) && x - nearest < Decimal(5, 3));
  const Decimal cut = a >= 0 ? x - truncated : truncated - x;
  RC_ASSERT(cut >= Decimal() && cut < Decimal(1, 2));
}

using Counts = std::vector<int64_t>;

Counts Find(const char* percent, int64_t total, Rounding rule) {
  return CountsThatPrint(Decimal::Parse(percent).value(), total, rule);
}

// Values from the tables of SPEC.md 6b.
TEST(CountsThatPrint, KnowsThePapersValues) {
  EXPECT_EQ(Find("62.62", 1838, Rounding::kNearest), Counts{1151});
  EXPECT_EQ(Find("62.63", 1838, Rounding::kUnknown), Counts{});  // N2
  EXPECT_EQ(Find("63.65", 1838, Rounding::kTruncate), Counts{1170});
  EXPECT_EQ(Find("63.65", 1838, Rounding::kNearest), Counts{});
  EXPECT_EQ(Find("63.55", 1838, Rounding::kNearest), Counts{1168});
  EXPECT_EQ(Find("63.55", 1838, Rounding::kTruncate), Counts{});
  EXPECT_EQ(Find("42.5", 567, Rounding::kNearest), Counts{241});
  EXPECT_EQ(Find("0.00", 567, Rounding::kNearest), Counts{0});
  EXPECT_EQ(Find("100.00", 567, Rounding::kNearest), Counts{567});
  EXPECT_EQ(Find("100.02", 567, Rounding::kNearest), Counts{});
}

TEST(CountsThatPrint, SeveralIfTheDigitsAreFew) {
  EXPECT_EQ(Find("50", 200, Rounding::kNearest), (Counts{99, 100}));
  EXPECT_EQ(Find("50", 200, Rounding::kTruncate), (Counts{100, 101}));
  EXPECT_EQ(Find("50", 200, Rounding::kUnknown), (Counts{99, 100, 101}));
}

RC_GTEST_PROP(CountsThatPrintProperty, FindsExactlyTheCountsThatPrint, ()) {
  const auto total = *rc::gen::inRange<int64_t>(1, 3000);
  const auto count = *rc::gen::inRange<int64_t>(0, total + 1);
  const int decimals = *rc::gen::inRange(0, 4);
  for (Rounding rule : {Rounding::kNearest, Rounding::kTruncate}) {
    const Decimal printed =
        Decimal::Quotient(100 * count, total, decimals, rule);
    Counts expected;
    for (int64_t c = 0; c <= total; ++c) {
      if (Decimal::Quotient(100 * c, total, decimals, rule) == printed) {
        expected.push_back(c);
      }
    }
    RC_ASSERT(CountsThatPrint(printed, total, rule) == expected);
  }
}

}  // namespace

}  // namespace softmoe::golden
