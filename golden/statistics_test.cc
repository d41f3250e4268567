// SPDX-License-Identifier: Apache-2.0
//
// Against closed forms (1 and 2 degrees of freedom, n = 1), published tables to
// their printed digits, and direct sums.
#include "golden/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace softmoe::golden {
namespace {

// The header's promise on distribution functions.
constexpr double kCdfError = 1e-13;

TEST(StudentCdf, AgreesWithClosedForms) {
  for (double t : {-50.0, -3.0, -1.0, -0.01, 0.0, 0.3, 1.0, 2.5, 40.0}) {
    EXPECT_NEAR(StudentCdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi,
                kCdfError)
        << t;
    EXPECT_NEAR(StudentCdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)),
                kCdfError)
        << t;
    const double s = t / std::sqrt(3.0);
    EXPECT_NEAR(StudentCdf(t, 3),
                0.5 + (s / (1 + s * s) + std::atan(s)) / std::numbers::pi,
                kCdfError)
        << t;
  }
  EXPECT_EQ(StudentCdf(std::numeric_limits<double>::infinity(), 4), 1);
  EXPECT_EQ(StudentCdf(-std::numeric_limits<double>::infinity(), 4), 0);
}

// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2: three
// decimals, so half a unit of the third.
TEST(StudentQuantile, AgreesWithThePublishedTable) {
  struct Entry {
    double freedom, p90, p95, p975, p99, p995;
  };
  for (const Entry& e :
       std::vector<Entry>{{1, 3.078, 6.314, 12.706, 31.821, 63.657},
                          {2, 1.886, 2.920, 4.303, 6.965, 9.925},
                          {3, 1.638, 2.353, 3.182, 4.541, 5.841},
                          {5, 1.476, 2.015, 2.571, 3.365, 4.032},
                          {10, 1.372, 1.812, 2.228, 2.764, 3.169},
                          {30, 1.310, 1.697, 2.042, 2.457, 2.750},
                          {100, 1.290, 1.660, 1.984, 2.364, 2.626}}) {
    EXPECT_NEAR(StudentQuantile(0.90, e.freedom), e.p90, 5e-4) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.95, e.freedom), e.p95, 5e-4) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.975, e.freedom), e.p975, 5e-4) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.99, e.freedom), e.p99, 5e-4) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.995, e.freedom), e.p995, 5e-4) << e.freedom;
  }
}

// Fifteen published digits of the standard normal quantiles.
TEST(NormalQuantile, AgreesWithPublishedDigits) {
  // Rounding of the probability (1e-16) over the density (>= 0.01) and the
  // bisection's last bit.
  EXPECT_NEAR(NormalQuantile(0.95), 1.644853626951473, 4e-15);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 4e-15);
  EXPECT_NEAR(NormalQuantile(0.995), 2.575829303548901, 2e-14);
  EXPECT_NEAR(NormalQuantile(0.05), -1.644853626951473, 4e-15);
  EXPECT_EQ(NormalQuantile(0.5), 0);
}

TEST(StudentCdf, TendsToTheNormal) {
  // |T_nu - Phi| <= (z^3 + z) phi(z) / (4 nu) + O(1/nu^2) <= 0.16 / nu.
  for (double z : {-3.0, -1.0, 0.5, 2.0}) {
    EXPECT_NEAR(StudentCdf(z, 1e6), NormalCdf(z), 0.2 / 1e6) << z;
  }
}

// verification.md 6: n = 3 runs against one published, s = 0.005: half-width
// 2.92 * 0.005 * sqrt(4/3) = 0.017.
TEST(StudentQuantile, GivesTheHalfWidthOfTheNote) {
  EXPECT_NEAR(StudentQuantile(0.95, 2) * 0.005 * std::sqrt(4.0 / 3.0), 0.017,
              5e-4);
}

double BinomialCdf(int64_t count, int64_t total, double p) {
  double sum = 0;
  for (int64_t k = 0; k <= count; ++k) {
    const auto n = static_cast<double>(total), x = static_cast<double>(k);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) -
                    std::lgamma(n - x + 1) + x * std::log(p) +
                    (n - x) * std::log1p(-p));
  }
  return sum;
}

TEST(RegularizedBeta, IsTheBinomialTail) {
  // P(X >= k) = I_p(k, n - k + 1); the sum of <= 60 terms, each with a
  // relative error of lgamma's few ulp times its size (<= 200): 1e-12.
  for (double p : {0.01, 0.3, 0.5, 0.97}) {
    for (int64_t k : {1, 7, 30, 59}) {
      const auto x = static_cast<double>(k);
      EXPECT_NEAR(RegularizedBeta(x, 60 - x + 1, p),
                  1 - BinomialCdf(k - 1, 60, p), 1e-12)
          << k << " " << p;
    }
  }
}

TEST(ExactProportionInterval, AgreesWithClosedForms) {
  // k = 0: (1 - upper)^n = tail; k = n mirrors it.
  for (int64_t n : {1, 10, 1838}) {
    const double upper = 1 - std::pow(0.05, 1.0 / static_cast<double>(n));
    EXPECT_NEAR(ExactProportionInterval(0, n, 0.9).high, upper, 1e-13);
    EXPECT_EQ(ExactProportionInterval(0, n, 0.9).low, 0);
    EXPECT_NEAR(ExactProportionInterval(n, n, 0.9).low, 1 - upper, 1e-13);
    EXPECT_EQ(ExactProportionInterval(n, n, 0.9).high, 1);
  }
  // 5 of 10 at 95 %: 0.1871, 0.8129 (textbook example, four decimals).
  EXPECT_NEAR(ExactProportionInterval(5, 10, 0.95).low, 0.1871, 5e-5);
  EXPECT_NEAR(ExactProportionInterval(5, 10, 0.95).high, 0.8129, 5e-5);
}

// Newcombe (1998), "Interval estimation for the difference between independent
// proportions", table II, method 10: 56/70 - 48/80 is 0.0524 to 0.3339.
TEST(ProportionDifference, AgreesWithNewcombesExample) {
  const Interval interval =
      ProportionDifference(56.0 / 70, 70, 48.0 / 80, 80, 0.95);
  EXPECT_NEAR(interval.low, 0.0524, 5e-5);
  EXPECT_NEAR(interval.high, 0.3339, 5e-5);
}

// ... and 81/263, method 3 for single proportions: 0.2553 to 0.3662.
TEST(WilsonInterval, AgreesWithNewcombesExample) {
  const Interval interval = WilsonInterval(81.0 / 263, 263, 0.95);
  EXPECT_NEAR(interval.low, 0.2553, 5e-5);
  EXPECT_NEAR(interval.high, 0.3662, 5e-5);
}

// verification.md 6: unpaired 95 % half-widths of a difference, in points.
TEST(ProportionDifference, GivesTheHalfWidthsOfTheNote) {
  auto half = [](double p, double n) {
    const Interval i = ProportionDifference(p, n, p, n, 0.95);
    return 50 * (i.high - i.low);
  };
  EXPECT_NEAR(half(0.64, 1838), 3.1, 0.05);
  EXPECT_NEAR(half(0.32, 10042), 1.3, 0.05);
  EXPECT_NEAR(half(0.36, 567), 5.6, 0.05);
}

RC_GTEST_PROP(StudentProperty, QuantileInvertsTheCdf, ()) {
  const double p = *rc::gen::inRange(1, 100'000) / 100'000.0;
  const double freedom = *rc::gen::inRange(1, 400) / 2.0 + 0.5;
  const double t = StudentQuantile(p, freedom);
  // One ulp of t moves the distribution function by t f(t) eps < eps.
  RC_ASSERT(std::fabs(StudentCdf(t, freedom) - p) <= kCdfError);
  RC_ASSERT(std::fabs(StudentQuantile(1 - p, freedom) + t) <=
            1e-9 * (1 + std::fabs(t)));
}

RC_GTEST_PROP(ProportionProperty, ExactIntervalsCover, ()) {
  const auto n = *rc::gen::inRange<int64_t>(1, 40);
  const double p = *rc::gen::inRange(1, 100) / 100.0;
  double covered = 0;
  for (int64_t k = 0; k <= n; ++k) {
    const Interval interval = ExactProportionInterval(k, n, 0.9);
    RC_ASSERT(interval.low <= interval.high);
    if (interval.low <= p && p <= interval.high) {
      covered += BinomialCdf(k, n, p) - (k > 0 ? BinomialCdf(k - 1, n, p) : 0);
    }
  }
  RC_ASSERT(covered >= 0.9 - 1e-9);
}

RC_GTEST_PROP(ProportionProperty, WilsonNarrowsAndHoldsItsCentre, ()) {
  const double p = *rc::gen::inRange(0, 1001) / 1000.0;
  const double n = *rc::gen::inRange(1, 5000);
  const Interval few = WilsonInterval(p, n, 0.9);
  const Interval many = WilsonInterval(p, 4 * n, 0.9);
  RC_ASSERT(few.low <= p + 1e-12 && p <= few.high + 1e-12);
  RC_ASSERT(many.high - many.low <= few.high - few.low);
}

RC_GTEST_PROP(HolmProperty, RejectsLikeItsDefinition, ()) {
  const auto thousandths =
      *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 200));
  std::vector<double> p;
  for (int value : thousandths) p.push_back(value / 1000.0);
  const std::vector<bool> rejected = HolmRejections(p, 0.05);
  RC_ASSERT(rejected.size() == p.size());
  std::vector<double> sorted = p;
  std::sort(sorted.begin(), sorted.end());
  size_t count = 0;
  while (count < sorted.size() &&
         sorted[count] * static_cast<double>(sorted.size() - count) <= 0.05) {
    ++count;
  }
  RC_ASSERT(static_cast<size_t>(
                std::count(rejected.begin(), rejected.end(), true)) == count);
  for (size_t i = 0; i < p.size(); ++i) {
    // Never more than without correction, never less than Bonferroni.
    if (rejected[i]) RC_ASSERT(p[i] <= 0.05);
    if (p[i] * static_cast<double>(p.size()) <= 0.05) RC_ASSERT(rejected[i]);
  }
}

}  // namespace
}  // namespace softmoe::golden
