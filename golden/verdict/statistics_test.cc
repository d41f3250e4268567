// SPDX-License-Identifier: Apache-2.0
//
// Compared with closed forms (1, 2, 3 and even degrees of freedom, n = 1),
// published tables to their printed digits, and direct sums.
#include "golden/verdict/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/errors.h"
#include "core/testing/bounded.h"

namespace softmoe::golden {
namespace {

// Half a unit of the last digit that a source prints.
constexpr double HalfUnit(int decimals) {
  return decimals == 0 ? 0.5 : HalfUnit(decimals - 1) / 10;
}

TEST(Mean, IsSummedFirstToLast) {
  EXPECT_EQ(Mean({1, 2, 6}), 3);
  EXPECT_EQ(SquaresAroundMean({1, 2, 6}), 14);
  EXPECT_EQ(ErrorOfMean({1, 2, 6}), std::sqrt(7.0 / 3));
  EXPECT_EQ(Mean({1, 1e16, -1e16, 4}), 1);  // the first 1 is lost
  EXPECT_TRUE(std::isnan(Mean({})));
}

TEST(StudentCdf, AgreesWithClosedForms) {
  for (double t :
       {-50.0, -3.0, -1.0, -0.01, -1e-10, 0.0, 1e-8, 0.3, 1.0, 2.5, 40.0}) {
    EXPECT_NEAR(StudentCdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi,
                kDistributionError)
        << t;
    EXPECT_NEAR(StudentCdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)),
                kDistributionError)
        << t;
    const double s = t / std::sqrt(3.0);
    EXPECT_NEAR(StudentCdf(t, 3),
                0.5 + (s / (1 + s * s) + std::atan(s)) / std::numbers::pi,
                kDistributionError)
        << t;
  }
  EXPECT_EQ(StudentCdf(std::numeric_limits<double>::infinity(), 4), 1);
  EXPECT_EQ(StudentCdf(-std::numeric_limits<double>::infinity(), 4), 0);
}

// Abramowitz and Stegun 26.7.4: for even nu, with c = nu/(nu + t^2),
// P(|T| <= t) = sqrt(1 - c) (1 + c/2 + (1 3)/(2 4) c^2 + ...), nu/2 terms. In
// long double, the last is rounded fewer than 3 nu times: 2e-15 at nu = 1e4.
TEST(StudentCdf, AgreesWithTheFiniteSumOfEvenDegrees) {
  for (int freedom : {4, 30, 100, 400, 1000, 10'000}) {
    for (int i = 1; i <= 50; ++i) {
      const double t = 0.1 * i;
      const long double squared = static_cast<long double>(t) * t;
      const long double c = freedom / (freedom + squared);
      long double term = 1, sum = 0;
      for (int m = 0; m < freedom / 2; ++m) {
        sum += term;
        term *= c * (2 * m + 1) / (2 * m + 2);
      }
      const long double half =
          std::sqrt(squared / (freedom + squared)) * sum / 2;
      EXPECT_NEAR(StudentCdf(t, freedom), static_cast<double>(0.5L + half),
                  kDistributionError)
          << t << " " << freedom;
      EXPECT_NEAR(StudentCdf(-t, freedom), static_cast<double>(0.5L - half),
                  kDistributionError)
          << -t << " " << freedom;
    }
  }
}

// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2: three
// decimals.
TEST(StudentQuantile, AgreesWithThePublishedTable) {
  constexpr double kPrinted = HalfUnit(3);
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
    EXPECT_NEAR(StudentQuantile(0.90, e.freedom), e.p90, kPrinted) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.95, e.freedom), e.p95, kPrinted) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.975, e.freedom), e.p975, kPrinted)
        << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.99, e.freedom), e.p99, kPrinted) << e.freedom;
    EXPECT_NEAR(StudentQuantile(0.995, e.freedom), e.p995, kPrinted)
        << e.freedom;
  }
}

// Fifteen published decimals of the standard normal quantiles.
TEST(NormalQuantile, AgreesWithPublishedDigits) {
  struct Entry {
    double probability, quantile;
  };
  for (const Entry& e :
       {Entry{0.95, 1.644853626951473}, Entry{0.975, 1.959963984540054},
        Entry{0.995, 2.575829303548901}, Entry{0.05, -1.644853626951473}}) {
    // The probability is rounded to a double, by half an ulp below 1, divided
    // by the density; so are both quantiles. Boost computes in long double.
    const double density = std::exp(-e.quantile * e.quantile / 2) *
                           std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double rounding =
        kDoubleUnit / 2 / density + 2 * kDoubleUnit * std::fabs(e.quantile);
    EXPECT_NEAR(NormalQuantile(e.probability), e.quantile,
                HalfUnit(15) + rounding)
        << e.probability;
  }
  EXPECT_EQ(NormalQuantile(0.5), 0);
}

// Fisher's expansion: the distribution function is Phi(z) - phi(z) (a + b +
// ...) with a = (z^3 + z) / (4 nu), b = (3 z^7 - 7 z^5 - 5 z^3 - 3 z) / (96
// nu^2). |phi b| is at most 0.225/nu^2, at |z| = 2.83; the later terms are less
// than a tenth of it from nu = 1e3 on.
TEST(StudentCdf, TendsToTheNormal) {
  for (double freedom : {1e3, 2e4}) {
    for (double z : {-3.0, -1.0, 0.5, 2.0}) {
      const double density =
          std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
      EXPECT_NEAR(StudentCdf(z, freedom),
                  NormalCdf(z) - density * (z * z * z + z) / (4 * freedom),
                  1.1 * 0.225 / (freedom * freedom) + kDistributionError)
          << z << " " << freedom;
    }
  }
}

// With an even number of degrees of freedom it is a finite sum; with one, the
// two tails of a normal variable.
TEST(ChiSquareTail, AgreesWithItsClosedForms) {
  for (const double x : {0.0, 1e-3, 0.5, 1.0, 4.0, 21.0, 60.0}) {
    const double half = x / 2;
    EXPECT_NEAR(ChiSquareTail(x, 2), std::exp(-half), kDistributionError);
    EXPECT_NEAR(ChiSquareTail(x, 4), std::exp(-half) * (1 + half),
                kDistributionError);
    EXPECT_NEAR(
        ChiSquareTail(x, 8),
        std::exp(-half) * (1 + half + half * half / 2 + half * half * half / 6),
        kDistributionError);
    EXPECT_NEAR(ChiSquareTail(x, 1), 2 * NormalCdf(-std::sqrt(x)),
                kDistributionError);
  }
}

// Gamma(1e4) is beyond long double.
TEST(ChiSquareTail, OfNothingIsOne) {
  for (const double freedom : {1.0, 4.0, 2e4}) {
    EXPECT_EQ(ChiSquareTail(0, freedom), 1) << freedom;
    EXPECT_NEAR(ChiSquareTail(1e-30, freedom), 1, kDistributionError)
        << freedom;
  }
}

// FORMAT.md's example: n = 3 runs against one published, s = 0.005: half-width
// 2.92 * 0.005 * sqrt(4/3) = 0.017.
TEST(StudentQuantile, GivesTheHalfWidthOfTheDocumentation) {
  EXPECT_NEAR(StudentQuantile(0.95, 2) * 0.005 * std::sqrt(4.0 / 3.0), 0.017,
              HalfUnit(3));
}

// P(first <= X <= last) of a binomial X, 0 < p < 1, in long double.
double BinomialSum(int64_t first, int64_t last, int64_t total, long double p) {
  const long double miss = 1 - p;
  // Avoids underflow of the first term.
  if (p > 0.5) return BinomialSum(total - last, total - first, total, miss);
  long double term = std::pow(miss, static_cast<long double>(total)), sum = 0;
  for (int64_t k = 0; k <= last; ++k) {
    if (k >= first) sum += term;
    term *= p / miss * (total - k) / (k + 1);
  }
  return static_cast<double>(sum);
}
// The error of that sum: each term is rounded at most 4 total + 2 times in long
// double, the sum once per term, and once to double.
double BinomialError(int64_t total) {
  return (5 * static_cast<double>(total) + 3) * 0x1p-64 + kDoubleUnit;
}

TEST(BetaQuantile, InvertsTheBinomialTail) {
  // P(X >= k) = I_p(k, n - k + 1); 10042 is HellaSwag. p times the density is
  // below 250 for all of these, so rounding p moves the tail by at most 3e-14.
  struct Items {
    int64_t total;
    std::vector<int64_t> counts;
  };
  for (const Items& items : {Items{60, {1, 7, 30, 59}},
                             Items{10'042, {90, 101, 3000, 5100, 9700}}}) {
    for (double tail : {0.01, 0.3, 0.5, 0.97}) {
      for (int64_t k : items.counts) {
        const auto x = static_cast<double>(k);
        const auto n = static_cast<double>(items.total);
        EXPECT_NEAR(BinomialSum(k, items.total, items.total,
                                BetaQuantile(x, n - x + 1, tail)),
                    tail, kDistributionError + BinomialError(items.total))
            << k << " of " << items.total << " " << tail;
      }
    }
  }
}

TEST(ExactProportionInterval, AgreesWithClosedForms) {
  // k = 0: (1 - upper)^n = tail; k = n mirrors it. The density at upper, n
  // tail/(1 - upper), turns the error of the probability into one of the bound.
  const double tail = 0.05;
  for (int64_t n : {1, 10, 1838}) {
    const double upper = 1 - std::pow(tail, 1.0 / static_cast<double>(n));
    const double error =
        kDistributionError * (1 - upper) / (static_cast<double>(n) * tail);
    EXPECT_NEAR(ExactProportionInterval(0, n, 0.9).high, upper, error);
    EXPECT_EQ(ExactProportionInterval(0, n, 0.9).low, 0);
    EXPECT_NEAR(ExactProportionInterval(n, n, 0.9).low, 1 - upper, error);
    EXPECT_EQ(ExactProportionInterval(n, n, 0.9).high, 1);
  }
  // 5 of 10 at 95 %: a textbook's example, to four decimals.
  EXPECT_NEAR(ExactProportionInterval(5, 10, 0.95).low, 0.1871, HalfUnit(4));
  EXPECT_NEAR(ExactProportionInterval(5, 10, 0.95).high, 0.8129, HalfUnit(4));
}

// Newcombe (1998), "Interval estimation for the difference between independent
// proportions", table II, method 10: 56/70 - 48/80 is 0.0524 to 0.3339.
TEST(ProportionDifference, AgreesWithNewcombesExample) {
  const Interval interval =
      ProportionDifference(56.0 / 70, 70, 48.0 / 80, 80, 0.95);
  EXPECT_NEAR(interval.low, 0.0524, HalfUnit(4));
  EXPECT_NEAR(interval.high, 0.3339, HalfUnit(4));
}

// ... and 81/263, method 3 for single proportions: 0.2553 to 0.3662.
TEST(WilsonInterval, AgreesWithNewcombesExample) {
  const Interval interval = WilsonInterval(81.0 / 263, 263, 0.95);
  EXPECT_NEAR(interval.low, 0.2553, HalfUnit(4));
  EXPECT_NEAR(interval.high, 0.3662, HalfUnit(4));
}

// The paper's tasks by hand, 196 sqrt(2 p (1-p) / n) points: how far two
// unpaired runs may differ at 95 %.
TEST(ProportionDifference, GivesTheHalfWidthsOfThePapersTasks) {
  auto half = [](double p, double n) {
    const Interval i = ProportionDifference(p, n, p, n, 0.95);
    return 50 * (i.high - i.low);
  };
  EXPECT_NEAR(half(0.64, 1838), 3.1, HalfUnit(1));
  EXPECT_NEAR(half(0.32, 10042), 1.3, HalfUnit(1));
  EXPECT_NEAR(half(0.36, 567), 5.6, HalfUnit(1));
}

RC_GTEST_PROP(StudentProperty, QuantileInvertsTheCdf, ()) {
  // Dyadic, so that 1 - p is exact.
  const double p = *rc::gen::inRange(1, 1 << 17) * 0x1p-17;
  const double freedom = *rc::gen::inRange(1, 400) / 2.0 + 0.5;
  const double t = StudentQuantile(p, freedom);
  // One ulp of t moves the distribution function by t f(t) eps < eps.
  RC_ASSERT(std::fabs(StudentCdf(t, freedom) - p) <= kDistributionError);
  RC_ASSERT(StudentQuantile(1 - p, freedom) == -t);
}

RC_GTEST_PROP(ProportionProperty, ExactIntervalsCover, ()) {
  const auto n = *rc::gen::inRange<int64_t>(1, 40);
  const double p = *rc::gen::inRange(1, 100) / 100.0;
  double covered = 0;
  for (int64_t k = 0; k <= n; ++k) {
    const Interval interval = ExactProportionInterval(k, n, 0.9);
    RC_ASSERT(interval.low <= interval.high);
    if (interval.low <= p && p <= interval.high) {
      covered += BinomialSum(k, k, n, p);
    }
  }
  // The probability left out on either side is at most the tail's.
  const double summing = (static_cast<double>(n) + 1) * kDoubleUnit;
  RC_ASSERT(covered >=
            0.9 - 2 * kDistributionError - BinomialError(n) - summing);
}

RC_GTEST_PROP(ProportionProperty, WilsonNarrowsAndHoldsItsCentre, ()) {
  const double p = *rc::gen::inRange(0, 1001) / 1000.0;
  const double n = *rc::gen::inRange(1, 5000);
  const Interval few = WilsonInterval(p, n, 0.9);
  const Interval many = WilsonInterval(p, 4 * n, 0.9);
  // Numbers up to 1, rounded 5 (the centre), 8 (half the width) and 1 times.
  const double rounding = (5 + 8 + 1) * kDoubleUnit;
  RC_ASSERT(few.low <= p + rounding && p <= few.high + rounding);
  RC_ASSERT(many.high - many.low <= few.high - few.low);
}

// This holds however the ends are rounded.
TEST(WilsonInterval, IsAProportion) {
  for (int total = 1; total <= 2000; ++total) {
    EXPECT_EQ(WilsonInterval(0, total, 0.95).low, 0) << total;
    EXPECT_EQ(WilsonInterval(1, total, 0.95).high, 1) << total;
  }
}

TEST(Statistics, ArgumentsOutOfRangeAreInternalErrors) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double x : {-0.1, 1.1, nan}) {
    EXPECT_THROW(BetaQuantile(2, 3, x), InternalError) << x;
    EXPECT_THROW(StudentQuantile(x, 4), InternalError) << x;
    EXPECT_THROW(NormalQuantile(x), InternalError) << x;
    EXPECT_THROW(WilsonInterval(x, 10, 0.9), InternalError) << x;
  }
  for (double parameter : {0.0, -1.0, nan}) {
    EXPECT_THROW(BetaQuantile(parameter, 1, 0.5), InternalError);
    EXPECT_THROW(BetaQuantile(1, parameter, 0.5), InternalError);
    EXPECT_THROW(StudentCdf(1, parameter), InternalError);
    EXPECT_THROW(StudentQuantile(0.9, parameter), InternalError);
  }
  EXPECT_THROW(StudentCdf(nan, 4), InternalError);
  EXPECT_THROW(NormalCdf(nan), InternalError);
  EXPECT_THROW(ChiSquareTail(-1, 4), InternalError);
  EXPECT_THROW(ChiSquareTail(nan, 4), InternalError);
  EXPECT_THROW(ChiSquareTail(1, 0), InternalError);
  EXPECT_THROW(ExactProportionInterval(3, 2, 0.9), InternalError);
  EXPECT_THROW(ExactProportionInterval(1, 2, 1), InternalError);
  // In range but beyond Boost's reach: its exception becomes ours.
  EXPECT_THROW(StudentQuantile(1e-300, 1e-5), InternalError);
}

TEST(Holm, ANanIsNeverRejectedAndCounts) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(HolmRejections({nan, 0.02, nan, 0.0125}, 0.05),
            (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(HolmRejections({0.02, nan, 0.0125}, 0.05),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(HolmRejections({nan}, 0.05), std::vector<bool>{false});
}

// 0.012 * 4 and 0.016 * 3 are within the level, 0.03 * 2 is not.
TEST(Holm, RejectsTheSmallestFirst) {
  EXPECT_EQ(HolmRejections({0.012, 0.016, 0.03, 0.5}, 0.05),
            (std::vector<bool>{true, true, false, false}));
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
    // Never more rejections than without correction, never fewer than
    // Bonferroni.
    if (rejected[i]) RC_ASSERT(p[i] <= 0.05);
    if (p[i] * static_cast<double>(p.size()) <= 0.05) RC_ASSERT(rejected[i]);
    for (size_t j = 0; j < p.size(); ++j) {
      if (p[i] < p[j] && rejected[j]) RC_ASSERT(rejected[i]);
    }
  }
}

}  // namespace
}  // namespace softmoe::golden
