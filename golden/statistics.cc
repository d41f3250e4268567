// SPDX-License-Identifier: Apache-2.0
#include "golden/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

// The continued fraction of I_x(a, b) by Lentz's method; converges fast for
// x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEpsilon = 1e-16;
  constexpr int kMaxSteps = 100'000;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
  double fraction = d;
  for (int m = 1; m <= kMaxSteps; ++m) {
    const double two_m = 2.0 * m;
    const double even = m * (b - m) * x / ((a + two_m - 1) * (a + two_m));
    d = 1 + even * d;
    c = 1 + even / c;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = std::fabs(c) < kTiny ? kTiny : c;
    fraction *= d * c;
    const double odd =
        -(a + m) * (a + b + m) * x / ((a + two_m) * (a + two_m + 1));
    d = 1 + odd * d;
    c = 1 + odd / c;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = std::fabs(c) < kTiny ? kTiny : c;
    const double factor = d * c;
    fraction *= factor;
    if (std::fabs(factor - 1) <= kEpsilon) return fraction;
  }
  throw InternalError("the incomplete beta function did not converge");
}

// What Stirling's formula leaves of log Gamma(x), x > 0:
// log Gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + StirlingRest(x).
double StirlingRest(double x) {
  // Up to where the first term that is left out, 691/(360360 x^11), is below
  // 2e-16. A step: the rest at x less that at x + 1.
  double below = 0;
  for (; x < 16; ++x) below += (x + 0.5) * std::log1p(1 / x) - 1;
  const double r = 1 / (x * x);
  const double series =
      1. / 12 - r * (1. / 360 - r * (1. / 1260 - r * (1. / 1680 - r / 1188)));
  return below + series / x;
}

// log(value), which is 1 + shift: by the shift, where value has lost it.
double LogNearOne(double value, double shift) {
  return std::fabs(shift) < 0.5 ? std::log1p(shift) : std::log(value);
}

// log of x^a (1-x)^b / (a B(a, b)); `y` is 1 - x. The logarithms of the three
// Gamma functions are a million times as large as the result where a is large:
// what cancels is left out (Loader, "Fast and accurate computation of binomial
// probabilities", 2000).
double LogBetaFront(double a, double b, double x, double y) {
  const double sum = a + b;
  // How far x is from the mean a/sum, times sum: from the smaller of x and y,
  // for the other may have been rounded from it.
  const double shift = x < y ? std::fma(x, sum, -a) : -std::fma(y, sum, -b);
  return a * LogNearOne(x / a * sum, shift / a) +
         b * LogNearOne(y / b * sum, -shift / b) + StirlingRest(sum) -
         StirlingRest(a) - StirlingRest(b) +
         0.5 * std::log(b / (2 * std::numbers::pi * a * sum));
}

// I_x(a, b) from x and its complement y = 1 - x, neither of them rounded away.
double RegularizedBeta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  if (x < (a + 1) / (a + b + 2)) {
    return std::exp(LogBetaFront(a, b, x, y)) * BetaFraction(a, b, x);
  }
  return 1 - std::exp(LogBetaFront(b, a, y, x)) * BetaFraction(b, a, y);
}

// The root of an increasing function, by bisection down to neighbours.
double Bisect(double low, double high,
              const std::function<bool(double)>& is_below) {
  for (int i = 0; i < 2200; ++i) {  // enough from 1e308 to one denormal
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (is_below(middle) ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// P(T > t) for t >= 0, without cancellation.
double StudentUpperTail(double t, double freedom) {
  if (std::isinf(t)) return 0;
  const double denominator = freedom + t * t;
  return 0.5 * RegularizedBeta(freedom / 2, 0.5, freedom / denominator,
                               t * t / denominator);
}

double NormalUpperTail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// The quantile of a symmetric distribution from its upper tail.
double SymmetricQuantile(double probability,
                         const std::function<double(double)>& upper_tail) {
  SOFTMOE_CHECK(probability > 0 && probability < 1) << probability;
  if (probability == 0.5) return 0;
  const double tail = std::min(probability, 1 - probability);
  double high = 1;
  while (upper_tail(high) > tail && high < 1e300) high *= 2;
  const double quantile =
      Bisect(0, high, [&](double t) { return upper_tail(t) > tail; });
  return probability < 0.5 ? -quantile : quantile;
}

}  // namespace

double RegularizedBeta(double a, double b, double x) {
  SOFTMOE_CHECK(a > 0 && b > 0 && x >= 0 && x <= 1)
      << a << " " << b << " " << x;
  return RegularizedBeta(a, b, x, 1 - x);
}

double BetaQuantile(double a, double b, double probability) {
  SOFTMOE_CHECK(probability >= 0 && probability <= 1) << probability;
  if (probability == 0) return 0;
  if (probability == 1) return 1;
  return Bisect(
      0, 1, [&](double x) { return RegularizedBeta(a, b, x) < probability; });
}

double StudentCdf(double t, double freedom) {
  SOFTMOE_CHECK(freedom > 0 && !std::isnan(t)) << freedom << " " << t;
  return t < 0 ? StudentUpperTail(-t, freedom)
               : 1 - StudentUpperTail(t, freedom);
}

double StudentQuantile(double probability, double freedom) {
  SOFTMOE_CHECK(freedom > 0) << freedom;
  return SymmetricQuantile(probability, [freedom](double t) {
    return StudentUpperTail(t, freedom);
  });
}

double NormalCdf(double z) { return NormalUpperTail(-z); }

double NormalQuantile(double probability) {
  return SymmetricQuantile(probability, NormalUpperTail);
}

Interval ExactProportionInterval(int64_t count, int64_t total,
                                 double confidence) {
  SOFTMOE_CHECK(total > 0 && count >= 0 && count <= total)
      << count << " of " << total;
  SOFTMOE_CHECK(confidence > 0 && confidence < 1) << confidence;
  const double tail = (1 - confidence) / 2;
  const auto k = static_cast<double>(count), n = static_cast<double>(total);
  return {count == 0 ? 0 : BetaQuantile(k, n - k + 1, tail),
          count == total ? 1 : BetaQuantile(k + 1, n - k, 1 - tail)};
}

Interval WilsonInterval(double p, double total, double confidence) {
  SOFTMOE_CHECK(total > 0 && p >= 0 && p <= 1) << p << " of " << total;
  SOFTMOE_CHECK(confidence > 0 && confidence < 1) << confidence;
  const double z = NormalQuantile(0.5 + confidence / 2);
  const double z2 = z * z / total;
  const double center = (p + z2 / 2) / (1 + z2);
  const double half =
      z / (1 + z2) * std::sqrt(p * (1 - p) / total + z2 / (4 * total));
  return {std::max(0.0, center - half), std::min(1.0, center + half)};
}

Interval ProportionDifference(double p, double p_total, double q,
                              double q_total, double confidence) {
  const Interval a = WilsonInterval(p, p_total, confidence);
  const Interval b = WilsonInterval(q, q_total, confidence);
  return {p - q - std::hypot(p - a.low, b.high - q),
          p - q + std::hypot(a.high - p, q - b.low)};
}

std::vector<bool> HolmRejections(const std::vector<double>& p_values,
                                 double level) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A NaN has no order: behind all others.
  auto key = [&](size_t i) {
    return std::isnan(p_values[i]) ? std::numeric_limits<double>::infinity()
                                   : p_values[i];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return key(i) < key(j); });
  std::vector<bool> rejected(p_values.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto remaining = static_cast<double>(order.size() - rank);
    // Not <=: a NaN stops the procedure.
    if (!(p_values[order[rank]] * remaining <= level)) break;
    rejected[order[rank]] = true;
  }
  return rejected;
}

}  // namespace softmoe::golden
