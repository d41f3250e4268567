// SPDX-License-Identifier: Apache-2.0
//
// regime_curve.h - the distance of runs from the sparse rows' losses at the
// same number of active experts, and the verdict on it (FORMAT.md, "The regime
// experiment"). It takes plain numbers, since simulations call it tens of
// thousands of times.
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_

#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// The runs of some rows, and of the sparse rows under the same seeds.
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

// Active experts must lie within the range of k; needs at least one seed.
RegimeDistances DistancesFromCurve(const RegimeTable& table,
                                   const Interval& exponents);

// The p in `exponents` for which a + b k^-p fits the losses best by least
// squares; the smallest of equals. Needs two or more losses at ascending k >=
// 1.
double SmoothExponent(const std::vector<double>& k,
                      const std::vector<double>& losses,
                      const Interval& exponents);

// The value at `active` experts of that curve for one seed's losses.
double ReadSmoothCurve(const std::vector<double>& k,
                       const std::vector<double>& losses, double exponent,
                       double active);

// A mean over seeds with Student's interval, in the numbers' unit.
struct RegimeReading {
  double estimate = 0, error = 0;
  Interval interval;
};

// Needs at least two numbers.
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

// The frozen rule for losses: the first verdict on which all readings agree, of
// superior (upper end below 0), matches (below the margin) and inferior (lower
// end above 0); else undecided.
RegimeStatus DecideRegime(const std::vector<RegimeReading>& readings,
                          double margin);

// Whether all readings have their lower end above 0.
bool IsWorse(const std::vector<RegimeReading>& readings);

// The difference of two means of at least two numbers each, with one common
// deviation.
RegimeReading DifferenceOf(const std::vector<double>& first,
                           const std::vector<double>& second,
                           double confidence);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_CURVE_H_
