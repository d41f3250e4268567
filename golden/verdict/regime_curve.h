// SPDX-License-Identifier: Apache-2.0
//
// regime_curve.h - how far runs lie from the losses of the sparse rows at the
// same number of active experts, and what follows (FORMAT.md, "The regime
// experiment"). Numbers alone: simulations call it tens of thousands of times.
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_

#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// The runs of some rows and of the sparse ones under the same seeds.
struct RegimeTable {
  std::vector<double> k;                    // of the sparse rows, ascending
  std::vector<std::vector<double>> sparse;  // [seeds][k], nat/token
  std::vector<std::vector<double>> loss, active;  // [seeds][rows]
};

// d_s of each seed: the mean over the rows of loss minus the sparse curve at
// the run's own active experts, by both readings of the curve, in nat/token.
struct RegimeDistances {
  std::vector<double> linear, smooth;
  double exponent = 0;  // p of the smooth curve
};

// Active experts must lie within the ends of k; one seed or more.
RegimeDistances DistancesFromCurve(const RegimeTable& table,
                                   const Interval& exponents);

// The p in `exponents` for which a + b k^-p is nearest to the losses, by least
// squares; the first of equals. Two or more losses at ascending k >= 1.
double SmoothExponent(const std::vector<double>& k,
                      const std::vector<double>& losses,
                      const Interval& exponents);

// The same curve, of one seed's losses, at `active` experts.
double ReadSmoothCurve(const std::vector<double>& k,
                       const std::vector<double>& losses, double exponent,
                       double active);

// A mean over seeds, with Student's interval, in the unit of the numbers.
struct RegimeReading {
  double estimate = 0, error = 0;
  Interval interval;
};

// Of two numbers or more.
RegimeReading ReadingOf(const std::vector<double>& numbers, double confidence);

enum class RegimeStatus {
  kSuperior,
  kMatches,
  kInferior,
  kUndecided,
  kNotTestable,
  kMistrusted,  // two seeds of a row gave the same bits, or a control failed
  kInterim,     // planned runs are missing
};

// The frozen rule, of losses: the first that all readings say of superior
// (the upper end is below 0), matches (below the margin) and inferior (the
// lower end is above 0), or undecided.
RegimeStatus DecideRegime(const std::vector<RegimeReading>& readings,
                          double margin);

// Whether the lower ends of all readings are above 0.
bool IsWorse(const std::vector<RegimeReading>& readings);

// The difference of two means, of two numbers or more each, with the deviation
// that both have in common.
RegimeReading DifferenceOf(const std::vector<double>& first,
                           const std::vector<double>& second,
                           double confidence);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_
