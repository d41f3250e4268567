// SPDX-License-Identifier: Apache-2.0
//
// equivalence.h - whether a measured value is equivalent to a golden one
// (FORMAT.md, "Verdicts"). That is more than "not significantly different",
// which holds for any data that are few enough: PASS needs evidence.
#ifndef SOFTMOE_GOLDEN_VERDICT_EQUIVALENCE_H_
#define SOFTMOE_GOLDEN_VERDICT_EQUIVALENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/comparator.h"
#include "golden/document/decimal.h"
#include "golden/document/document.h"

namespace softmoe::golden {

// Error rate of each one-sided test; intervals have 1 - 2 * level.
inline constexpr double kLevel = 0.05;

// Standard deviation over seeds, pooled over cells, in their unit, with its
// degrees of freedom.
struct PooledDeviation {
  double deviation = 0;
  double freedom = 0;  // 0: nothing is known
  // For percentages of counted items: Cell::flip_share, pooled.
  std::optional<double> flip_share = {};
  bool known() const { return freedom > 0; }
  // Whether all its runs agree; not known if only their counts do.
  bool all_equal() const { return deviation == 0 && !flip_share; }
};

// sqrt(sum (n_i - 1) s_i^2 / sum (n_i - 1)) over the cells that have a
// deviation. Cells whose runs are all equal (settings, not measurements) are
// left out, so that they do not dilute the others. Shares of flips are pooled
// with the same weights; those of 0 are left out, too.
//
// Cells with the same number in `trainings` come from the same trainings, which
// count once: the mean of their squares, with the n - 1 of the largest n.
// Without `trainings`, each cell has its own.
PooledDeviation Pool(const std::vector<const Cell*>& cells,
                     const std::vector<size_t>& trainings = {});

// The standard deviation of a percentage of items, over runs, if `flip_share`
// of the answers flip between two of them, independently: 100 sqrt(flip_share /
// (2 items runs)). An item that a run answers correctly with probability p
// flips with probability 2 p (1 - p), and adds p (1 - p) to the variance of the
// count. In percent; `cell` has a proportion.
double FlipDeviation(double flip_share, const Cell& cell);

// The difference ours - golden, in the cells' unit.
struct Difference {
  double point = 0;  // of the values
  // Confidence interval at 1 - 2 kLevel, widened by rounding; infinite if the
  // seed noise is unknown.
  Interval interval;
  double half_width = 0;  // without the rounding
  // p-value of "the absolute difference is at most the margin", by the noise
  // that leaves more doubt: small if the margin is certainly exceeded.
  double p_outside = 1;
};

// Compares two cells with values in one unit; margin > 0. The noise is the
// larger of two: seeds (t distribution of the pooled deviation, sqrt(1/n +
// 1/n_golden)), and, for percentages of counted items, the flips of answers
// between runs (FlipDeviation of both) or, if nobody has measured these, the
// sampling of items in their place (Newcombe's interval). It is not the sum of
// the two, since seeds already scatter the answers to the same items.
Difference Compare(const Cell& ours, const Cell& golden,
                   const PooledDeviation& noise, double margin);

// Whether `ours` is the mean of two or more runs that are all equal except for
// the roundings of a mean, and no answer is known to flip between them. Then
// they were probably one run, and their number is not evidence.
bool RunsAreEqual(const Cell& ours);

// PASS if the interval lies within +-margin, FAIL if p_outside is at most
// kLevel (then it lies outside), else INCONCLUSIVE. MISTRUSTED instead of PASS
// and FAIL if the values differ and all runs from which the noise was estimated
// are equal, unless they are so `by_construction`.
Status Equivalence(const Difference& difference, const PooledDeviation& noise,
                   double margin, bool by_construction = false);

// For a pair that is INCONCLUSIVE, or a FAIL whose p_outside exceeds `level`, a
// part of kLevel: the least number of our runs that would decide PASS, or FAIL
// with a p_outside of at most `level`, if difference and deviation stayed the
// same; 2 if the noise is still unknown, nullopt if no number up to 10,000
// decides.
std::optional<int64_t> RunsNeeded(const Cell& ours, const Cell& golden,
                                  const PooledDeviation& noise, double margin,
                                  double level);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_EQUIVALENCE_H_
