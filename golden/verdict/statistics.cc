// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <exception>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

// In double the incomplete beta function misses kDistributionError from 1e4
// items on (1.8e-13 at 3000 of 10042, p = 0.3): x^a (1-x)^b has powers that
// large. So the type is fixed here, with at least 11 spare bits, and Boost must
// not promote it. Evaluation errors are thrown.
using Real = long double;
static_assert(std::numeric_limits<Real>::digits >= 64);
namespace policies = boost::math::policies;
using AsNamed =
    policies::policy<policies::promote_float<false>,
                     policies::promote_double<false>,
                     policies::domain_error<policies::throw_on_error>,
                     policies::pole_error<policies::throw_on_error>,
                     policies::overflow_error<policies::throw_on_error>,
                     policies::evaluation_error<policies::throw_on_error>>;
using Normal = boost::math::normal_distribution<Real, AsNamed>;
using Student = boost::math::students_t_distribution<Real, AsNamed>;

// Returns the result of `evaluate`; Boost's exceptions become InternalError.
template <typename Evaluate>
double Evaluated(const Evaluate& evaluate) {
  try {
    return static_cast<double>(evaluate());
  } catch (const std::exception& error) {
    throw InternalError(error.what());
  }
}

// The quantile of a symmetric distribution, through its lower tail, which loses
// no digits.
template <typename Distribution>
double SymmetricQuantile(const Distribution& distribution, double probability) {
  SOFTMOE_CHECK(probability > 0 && probability < 1) << probability;
  if (probability == 0.5) return 0;
  const Real tail = std::min(probability, 1 - probability);
  const double quantile =
      Evaluated([&] { return boost::math::quantile(distribution, tail); });
  return probability < 0.5 ? quantile : -quantile;
}

}  // namespace

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

double SquaresAroundMean(const std::vector<double>& values) {
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

double ErrorOfMean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  return std::sqrt(SquaresAroundMean(values) / (count - 1) / count);
}

double BetaQuantile(double a, double b, double probability) {
  SOFTMOE_CHECK(a > 0 && b > 0 && probability >= 0 && probability <= 1)
      << a << " " << b << " " << probability;
  return Evaluated([&] {
    return boost::math::ibeta_inv(Real{a}, Real{b}, Real{probability},
                                  AsNamed());
  });
}

double StudentCdf(double t, double freedom) {
  return StudentTails(t, freedom).lower;
}

Tails StudentTails(double t, double freedom) {
  SOFTMOE_CHECK(freedom > 0 && !std::isnan(t)) << freedom << " " << t;
  double larger = 0;
  const double smaller = Evaluated([&] {
    // With one degree of freedom Boost takes 1 - arcsin(sqrt(y)), which has
    // half of the digits near y = 1, t = 0.
    const Real tail =
        freedom == 1
            ? std::atan2(Real{1}, std::abs(Real{t})) / std::numbers::pi_v<Real>
            : boost::math::cdf(Student(freedom), -std::abs(Real{t}));
    larger = static_cast<double>(1 - tail);
    return tail;
  });
  return t > 0 ? Tails{larger, smaller} : Tails{smaller, larger};
}

double StudentQuantile(double probability, double freedom) {
  SOFTMOE_CHECK(freedom > 0) << freedom;
  return SymmetricQuantile(Student(freedom), probability);
}

double ChiSquareTail(double x, double freedom) {
  SOFTMOE_CHECK(freedom > 0 && x >= 0) << freedom << " " << x;
  // P(X < x) is at most (x/2)^2/2 there; Boost's gamma function may overflow.
  if (freedom >= 4 && x < 1e-9) return 1;
  return Evaluated([&] {
    return boost::math::gamma_q(Real{freedom} / 2, Real{x} / 2, AsNamed());
  });
}

double NormalCdf(double z) {
  SOFTMOE_CHECK(!std::isnan(z)) << z;
  return Evaluated([&] { return boost::math::cdf(Normal(), Real{z}); });
}

double NormalQuantile(double probability) {
  return SymmetricQuantile(Normal(), probability);
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
  // At p = 0 and p = 1 one end equals p, up to rounding.
  return {p == 0 ? 0 : std::max(0.0, center - half),
          p == 1 ? 1 : std::min(1.0, center + half)};
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
  // NaN has no order: it sorts last.
  auto key = [&](size_t i) {
    return std::isnan(p_values[i]) ? std::numeric_limits<double>::infinity()
                                   : p_values[i];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return key(i) < key(j); });
  std::vector<bool> rejected(p_values.size());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto remaining = static_cast<double>(order.size() - rank);
    // Not >: NaN must stop the procedure.
    if (!(p_values[order[rank]] * remaining <= level)) break;
    rejected[order[rank]] = true;
  }
  return rejected;
}

}  // namespace softmoe::golden
