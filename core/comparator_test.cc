// SPDX-License-Identifier: Apache-2.0
//
// The comparator is tested before anything is tested with it: a harness whose
// comparator passes NaN proves nothing.
#include "core/comparator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

using Values = std::vector<double>;

// Distinct values of magnitude 1..2 with bounds of 1e-3: never degenerate.
rc::Gen<Values> OrdinaryValues() {
  return rc::gen::exec([] {
    const auto raw = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1 << 20)));
    Values values;
    for (size_t i = 0; i < raw.size(); ++i) {
      values.push_back((i % 2 ? -1 : 1) *
                       (1 + (raw[i] + 0.5 * (i % 7)) / (1 << 21)));
    }
    return values;
  });
}

Expectations AnyShape() {
  Expectations expectations;
  expectations.may_be_constant = true;
  return expectations;
}

TEST(Comparator, CountsErrorsInUlps) {
  // Around 1.5, where an ulp of float is 2^-23 and one of bf16 2^-7.
  const Values errors = {0, 0.5, 0.75, 1, 2, 3, 16, 256, 257, kInf, kNan};
  for (const auto& [digits, ulp] :
       {std::pair(24, 0x1p-23), std::pair(8, 0x1p-7), std::pair(53, 0x1p-52)}) {
    Values got, expected(errors.size(), 1.5), bound(errors.size(), 1e3);
    for (const double error : errors) got.push_back(1.5 + error * ulp);
    Expectations expectations = AnyShape();
    expectations.digits = digits;
    EXPECT_EQ(Compare(got, expected, bound, expectations).ulps,
              (UlpHistogram{2, 2, 1, 1, 1, 1, 3}))
        << digits;
  }
  // By default `digits` is that of the type. Zero has the ulp of the smallest
  // normal float, which is many ulps of a double.
  const std::vector<float> zero = {0x1p-149f};
  EXPECT_EQ(Compare(std::span<const float>(zero), Values{0.0}, Values{1.0},
                    AnyShape())
                .ulps[1],
            1);
}

RC_GTEST_PROP(Comparator, IsReflexive, ()) {
  const Values values = *OrdinaryValues();
  const Values zero(values.size(), 0.0);
  RC_ASSERT(Compare(values, values, zero, AnyShape()).ok());
}

// An element that is off by a little more than its bound is found wherever it
// is, and one off by a little less is not, whatever the other elements are.
RC_GTEST_PROP(Comparator, SeesOneElementAnywhere, ()) {
  const Values expected = *OrdinaryValues();
  const size_t at = *rc::gen::inRange<size_t>(0, expected.size());
  const double sign = *rc::gen::element(-1.0, 1.0);
  const Values bound(expected.size(), 1e-3);
  Values got = expected;
  got[at] = expected[at] + sign * 0.99e-3;
  RC_ASSERT(Compare(got, expected, bound, AnyShape()).ok());
  got[at] = expected[at] + sign * 1.01e-3;
  const Comparison result = Compare(got, expected, bound, AnyShape());
  RC_ASSERT(result.status == Status::kFail);
  RC_ASSERT(result.failures == 1);
  RC_ASSERT(result.first_failure == static_cast<int64_t>(at));
  RC_ASSERT(result.worst == static_cast<int64_t>(at));
  RC_ASSERT(result.utilisation > 1 && result.utilisation < 1.02);
}

RC_GTEST_PROP(Comparator, AnyNanFails, ()) {
  const Values values = *OrdinaryValues();
  const size_t at = *rc::gen::inRange<size_t>(0, values.size());
  const int where = *rc::gen::inRange(0, 4);
  Values got = values, expected = values, bound(values.size(), 1.0);
  Expectations all;
  all.may_be_constant = all.may_be_tiny = all.may_be_infinite = true;
  if (where == 0 || where == 3) got[at] = kNan;
  if (where == 1 || where == 3) expected[at] = kNan;
  if (where == 2) bound[at] = kNan;
  RC_ASSERT(Compare(got, expected, bound, all).status == Status::kFail);
}

TEST(Comparator, InfinitiesPassOnlyWhereAllowedAndOfTheSameSign) {
  Expectations allowed;
  allowed.may_be_infinite = true;
  const Values bound = {1, 1};
  const Values expected = {2, kInf};
  EXPECT_TRUE(Compare(Values{2, kInf}, expected, bound, allowed).ok());
  EXPECT_FALSE(Compare(Values{2, kInf}, expected, bound).ok());
  EXPECT_FALSE(Compare(Values{2, -kInf}, expected, bound, allowed).ok());
  EXPECT_FALSE(Compare(Values{2, 1e308}, expected, bound, allowed).ok());
  EXPECT_FALSE(Compare(Values{kInf, kInf}, expected, bound, allowed).ok());
  EXPECT_FALSE(Compare(Values{2, 3}, Values{2, 3.5}, Values{1, kInf}).ok());
  EXPECT_FALSE(Compare(Values{2, 3}, Values{2, 3.5}, Values{1, -1}).ok());
}

TEST(Comparator, SubnormalsAndSignedZerosCompareByValue) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const Values expected = {0, tiny, 1};
  EXPECT_TRUE(Compare(Values{-0.0, tiny, 1}, expected, Values{0, 0, 0}).ok());
  EXPECT_FALSE(Compare(Values{0, 2 * tiny, 1}, expected, Values{0, 0, 0}).ok());
  EXPECT_TRUE(Compare(Values{0, 2 * tiny, 1}, expected, Values{0, tiny, 0},
                      {.may_be_tiny = true})
                  .ok());
}

// Every combination of special values as got, expected and bound, against the
// contract in one line: the expected value is finite and got lies within a
// finite bound of it, or both are the same infinity and that is allowed.
TEST(Comparator, SpecialValuesFollowTheContract) {
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  constexpr double kMax = std::numeric_limits<double>::max();
  const Values special = {kNan,   kInf, -kInf, 0.0,  -0.0, kTiny,
                          -kTiny, 1.0,  -1.0,  kMax, -kMax};
  Expectations all = AnyShape();
  all.may_be_tiny = true;
  int passed = 0;
  for (const bool infinite : {false, true}) {
    all.may_be_infinite = infinite;
    for (const double got : special) {
      for (const double expected : special) {
        for (const double bound : special) {
          const bool bounded = bound >= 0 && bound < kInf;
          const bool within =
              std::isfinite(expected) && std::fabs(got - expected) <= bound;
          const bool same = infinite && std::isinf(expected) && got == expected;
          const bool pass = bounded && (within || same);
          EXPECT_EQ(
              Compare(Values{got}, Values{expected}, Values{bound}, all).ok(),
              pass)
              << got << " " << expected << " +- " << bound;
          passed += pass;
        }
      }
    }
  }
  EXPECT_GT(passed, 100);
}

// The same elements in another order, or as floats, are judged the same.
RC_GTEST_PROP(Comparator, NeitherOrderNorTypeMatters, ()) {
  const Values ordinary = *OrdinaryValues();
  Values expected, got, bound;
  for (size_t i = 0; i < ordinary.size(); ++i) {
    expected.push_back(static_cast<float>(ordinary[i]));
    bound.push_back(std::ldexp(1.0, *rc::gen::inRange(-20, -10)));
    got.push_back(static_cast<float>(
        expected[i] + bound[i] * (*rc::gen::inRange(-140, 141) / 128.0)));
  }
  const Comparison first = Compare(got, expected, bound, AnyShape());
  const std::vector<float> floats(got.begin(), got.end());
  const Comparison typed =
      Compare(std::span<const float>(floats), expected, bound, AnyShape());
  RC_ASSERT(typed.Text() == first.Text());
  const size_t turn = *rc::gen::inRange<size_t>(0, got.size());
  for (Values* values : {&got, &expected, &bound}) {
    std::rotate(values->begin(), values->begin() + turn, values->end());
  }
  const Comparison turned = Compare(got, expected, bound, AnyShape());
  RC_ASSERT(turned.status == first.status);
  RC_ASSERT(turned.failures == first.failures);
  RC_ASSERT(turned.utilisation == first.utilisation);
}

TEST(Comparator, SizesMustAgreeAndNotBeZero) {
  EXPECT_EQ(Compare(Values{1, 2}, Values{1}, Values{1}).status,
            Status::kNotComparable);
  EXPECT_EQ(Compare(Values{1, 2}, Values{1, 2}, Values{1}).status,
            Status::kNotComparable);
  EXPECT_EQ(Compare(Values{}, Values{}, Values{}).status, Status::kFail);
}

TEST(Comparator, TheLastElementOfTheLastBatchCounts) {
  Values expected(3 * 64);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = 1.0 + i;
  Values got = expected;
  got.back() += 1e-6;
  const Values bound(expected.size(), 1e-9);
  const Comparison result = Compare(got, expected, bound);
  EXPECT_EQ(result.status, Status::kFail);
  EXPECT_EQ(result.first_failure, 3 * 64 - 1);
}

TEST(Comparator, DegenerateDataIsMistrusted) {
  const Values zeros(8, 0.0), bound(8, 1e-6);
  EXPECT_EQ(Compare(zeros, zeros, bound).status, Status::kMistrusted);
  const Values ones(8, 1.0);
  EXPECT_EQ(Compare(ones, ones, bound).status, Status::kMistrusted);
  EXPECT_TRUE(Compare(ones, ones, bound, {.may_be_constant = true}).ok());
  // Five of eight values are below their bound: zeros would pass there too.
  const Values faint = {1, 2, 3, 1e-7, 2e-7, 3e-7, 4e-7, 5e-7};
  EXPECT_EQ(Compare(faint, faint, bound).status, Status::kMistrusted);
  EXPECT_TRUE(Compare(faint, faint, bound, {.may_be_tiny = true}).ok());
  // But a difference is a failure before anything else.
  Values wrong = zeros;
  wrong[3] = 1;
  EXPECT_EQ(Compare(wrong, zeros, bound).status, Status::kFail);
}

TEST(Comparator, WhatIsNoPassSaysWhy) {
  const Values one = {1.0}, two = {1.0, 2.0}, zeros = {0.0, 0.0};
  const Comparison not_comparable = Compare(one, two, two);
  const Comparison failed = Compare(zeros, two, zeros);
  const Comparison mistrusted = Compare(zeros, zeros, two);
  EXPECT_TRUE(Says(not_comparable.reason, "1 values computed, 2 expected"));
  EXPECT_TRUE(Says(failed.reason, "2 of 2 elements"));
  EXPECT_TRUE(Says(mistrusted.reason, "all 2 expected values"));
  EXPECT_NE(Compare(Values{}, Values{}, Values{}).reason, "");
  EXPECT_EQ(Compare(two, two, zeros).reason, "");
  EXPECT_STREQ(StatusName(failed.status), "FAIL");
  EXPECT_STREQ(StatusName(mistrusted.status), "MISTRUSTED");
  EXPECT_STREQ(StatusName(not_comparable.status), "NOT_COMPARABLE");
  EXPECT_STREQ(StatusName(Status::kPass), "PASS");
  EXPECT_STREQ(StatusName(Status::kInconclusive), "INCONCLUSIVE");
  EXPECT_STREQ(StatusName(Status::kUnsupported), "UNSUPPORTED");
}

TEST(Comparator, BiasOfOneSidedErrorsStandsOut) {
  Values expected(1000), scattered(1000), pushed(1000);
  const Values bound(1000, 1.0);
  for (int i = 0; i < 1000; ++i) {
    const double error = std::sin(12.9898 * i);  // scatters in (-1, 1)
    expected[i] = 100 + i;
    scattered[i] = expected[i] + error;
    pushed[i] = expected[i] + std::fabs(error);
  }
  EXPECT_LT(std::fabs(Compare(scattered, expected, bound).bias_z), 6);
  EXPECT_GT(Compare(pushed, expected, bound).bias_z, 6);
}

TEST(Comparator, TextNamesTheWorstElement) {
  const Comparison result =
      Compare(Values{1, 2, 9}, Values{1, 2, 3}, Values{1e-3, 1e-3, 1e-3});
  EXPECT_TRUE(Says(result.Text(), "FAIL: 1 of 3", "[2]"));
}

}  // namespace
}  // namespace softmoe
