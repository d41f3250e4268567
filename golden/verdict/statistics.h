// SPDX-License-Identifier: Apache-2.0
//
// statistics.h - the distributions and intervals on which verdicts rest.
//
// The distributions are Boost.Math's, in long double. Their arguments and those
// of intervals outside the stated ranges, including NaN, are an InternalError.
#ifndef SOFTMOE_GOLDEN_VERDICT_STATISTICS_H_
#define SOFTMOE_GOLDEN_VERDICT_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// The mean of the numbers, summed first to last; NaN for an empty list.
double Mean(const std::vector<double>& values);
// The sum of the squared differences from the mean.
double SquaresAroundMean(const std::vector<double>& values);
// The standard error of the mean of independent numbers; NaN for a single one.
double ErrorOfMean(const std::vector<double>& values);

// Absolute error of the distribution functions, for 1 to 2e4 degrees of
// freedom, and of the probability below BetaQuantile, for a, b >= 1 and a + b
// <= 2e4, but for what rounding the quantile to a double does to it (5e-13 at a
// = 10042, b = 1).
inline constexpr double kDistributionError = 1e-13;

// The x below which Beta(a, b) has this probability; a, b > 0, probability in
// [0, 1].
double BetaQuantile(double a, double b, double probability);

// P(T <= t) of Student's t with `freedom` > 0 degrees of freedom (need not be
// an integer); t may be infinite.
double StudentCdf(double t, double freedom);
// StudentCdf of t and of -t, at the cost of one.
struct Tails {
  double lower = 0, upper = 0;
};
Tails StudentTails(double t, double freedom);
// Inverse of StudentCdf; probability in (0, 1).
double StudentQuantile(double probability, double freedom);

// P(X > x) of chi-square with `freedom` > 0 degrees of freedom, x >= 0.
double ChiSquareTail(double x, double freedom);

double NormalCdf(double z);
double NormalQuantile(double probability);  // probability in (0, 1)

// Two-sided intervals for a proportion, as fractions. Clopper-Pearson: never
// covers less than `confidence`. count in [0, total].
Interval ExactProportionInterval(int64_t count, int64_t total,
                                 double confidence);
// Wilson's score interval around the fraction p of `total` items (p need not
// be count/total: it may be a printed percentage).
Interval WilsonInterval(double p, double total, double confidence);
// Newcombe's hybrid score interval of p - q, two independent proportions
// (Newcombe 1998, method 10).
Interval ProportionDifference(double p, double p_total, double q,
                              double q_total, double confidence);

// Holm's step-down procedure: which hypotheses are rejected so that the chance
// of any false rejection is at most `level`, however they depend on each other
// (Holm 1979). p-values in [0, 1]; a NaN counts as 1.
std::vector<bool> HolmRejections(const std::vector<double>& p_values,
                                 double level);

// More runs than anybody will start.
inline constexpr int64_t kMostRuns = 10'000;

// The least count above `low` that `decides`; nullopt if none up to kMostRuns
// does. `low` must not decide, and every count above the result must.
template <typename Decides>
std::optional<int64_t> LeastCount(int64_t low, const Decides& decides) {
  if (low >= kMostRuns || !decides(kMostRuns)) return std::nullopt;
  int64_t high = kMostRuns;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (decides(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_STATISTICS_H_
