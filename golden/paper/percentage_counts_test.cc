// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/percentage_counts.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace softmoe::golden {
namespace {

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
