// SPDX-License-Identifier: Apache-2.0
//
// The laws of SPEC.md 1.5 that LapSum's weights obey, at bounds derived from
// n, k, T and the scores (lapsum_bounds.h): 1-9 and 11-16. Laws of derivatives
// are in lapsum_gradient_property_test.
//
// Not tested, because they only seem true: p is not monotone in T, and the root
// for k = j need not lie between the j-th and the next score.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "property_tests/testing/generators.h"
#include "property_tests/testing/lapsum_bounds.h"
#include "reference/lapsum.h"
#include "reference/softmax.h"

namespace softmoe::property_tests {
namespace {

using reference::LapSum;
using reference::Vector;

double Max(const std::vector<double>& scores) {
  return *std::max_element(scores.begin(), scores.end());
}
double Min(const std::vector<double>& scores) {
  return *std::min_element(scores.begin(), scores.end());
}
double LargestMagnitude(const std::vector<double>& scores) {
  return std::max(std::abs(Max(scores)), std::abs(Min(scores)));
}

// Law 1. Each weight is within its bound, so the sum is within the sum of the
// bounds.
RC_GTEST_PROP(LapSumLaw, Law01WeightsSumToK, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const double bound = SumOf(WeightBounds(s)) +
                       2 * kDoubleUnit * c.mean_active;  // the sum's rounding
  RC_ASSERT(std::abs(SumOf(s.weights) - c.mean_active) <= bound);
  for (double p : s.weights) RC_ASSERT(p >= 0 && p <= 1);
}

// Law 2, exact: (r - anc)/T - t and F are monotone in floating point too.
RC_GTEST_PROP(LapSumLaw, Law02WeightsAreOrderedAsTheScores, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  std::vector<int> order(c.n());
  for (int i = 0; i < c.n(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return c.scores[a] < c.scores[b]; });
  for (int i = 1; i < c.n(); ++i) {
    const double lower = s.weights[order[i - 1]], upper = s.weights[order[i]];
    RC_ASSERT(lower <= upper);
    if (c.scores[order[i - 1]] == c.scores[order[i]]) RC_ASSERT(lower == upper);
  }
}

// Law 3, bitwise: the reference sorts first.
RC_GTEST_PROP(LapSumLaw, Law03PermutationsCommute, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  std::vector<int> permutation(c.n());
  for (int i = 0; i < c.n(); ++i) permutation[i] = i;
  for (int i = c.n() - 1; i > 0; --i) {
    std::swap(permutation[i], permutation[*Uniform(0, i + 1)]);
  }
  LapSumCase permuted = c;
  for (int i = 0; i < c.n(); ++i) permuted.scores[i] = c.scores[permutation[i]];
  const LapSum s = Solve(c), t = Solve(permuted);
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(t.weights[i] == s.weights[permutation[i]]);
  }
}

// Law 4, exact: where adding the shift is exact, only differences of scores
// enter, and they are the same. Scores are at most 2^26 steps of the grid and
// shifts 2^50, so the sums fit 53 bits.
RC_GTEST_PROP(LapSumLaw, Law04ExactShiftsChangeNoBit, ()) {
  LapSumCase c = *LapSumCases();
  RC_PRE(c.grid > 0);
  Classify(c);
  const double shift =
      c.grid * static_cast<double>(*Uniform(-(1LL << 50), 1LL << 50));
  LapSumCase shifted = c;
  for (double& score : shifted.scores) score += shift;
  RC_ASSERT(Solve(shifted).weights == Solve(c).weights);
}

// Law 4 for any shift: each r + c is rounded by u max|r + c|, and
// |dp_i| <= (f_i/T)(|dr_i| + max|dr|) <= max|dr|/T.
RC_GTEST_PROP(LapSumLaw, Law04AnyShiftChangesLittle, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const double shift = *UnitDouble() * *rc::gen::element(1.0 / 3, 1e3, 1e7);
  LapSumCase shifted = c;
  for (double& score : shifted.scores) score += shift;
  const LapSum s = Solve(c), t = Solve(shifted);
  const Vector bounds = WeightBounds(s) + WeightBounds(t);
  const double rounding =
      kDoubleUnit * LargestMagnitude(shifted.scores) / c.temperature;
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(std::abs(s.weights[i] - t.weights[i]) <= bounds[i] + rounding);
  }
}

// Law 5, bitwise: a power of two scales every rounding along.
RC_GTEST_PROP(LapSumLaw, Law05PowersOfTwoScaleScoresAndTemperature, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const double lambda = std::ldexp(1.0, static_cast<int>(*Uniform(-60, 61)));
  LapSumCase scaled = c;
  for (double& score : scaled.scores) score *= lambda;
  scaled.temperature *= lambda;
  RC_ASSERT(Solve(scaled).weights == Solve(c).weights);
}

// Law 6, for k such that n - k is exact: p(r, k) + p(-r, n-k) = 1.
RC_GTEST_PROP(LapSumLaw, Law06ComplementsAddToOne, ()) {
  LapSumCase c = *LapSumCases();
  Classify(c);
  c.mean_active = static_cast<double>(*Uniform(1, c.n() * (1LL << 20))) *
                  0x1p-20;  // 8 + 20 bits
  LapSumCase complement = c;
  for (double& score : complement.scores) score = -score;
  complement.mean_active = c.n() - c.mean_active;
  const LapSum s = Solve(c), t = Solve(complement);
  const Vector bounds = WeightBounds(s) + WeightBounds(t);
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(std::abs(s.weights[i] + t.weights[i] - 1) <=
              bounds[i] + kDoubleUnit);
  }
}

// Law 7: every weight grows with k, all of them by the step together, and the
// root falls. Over the step the root moves by eta T, so every density changes
// by a factor within e^+-eta, every share within e^+-2eta: the growth is at
// least q dk e^-2eta, and the move at least 2 dk/n (sum f <= n/2).
RC_GTEST_PROP(LapSumLaw, Law07WeightsGrowAndTheRootFallsWithK, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const double room = c.n() - c.mean_active;
  LapSumCase larger = c;
  larger.mean_active += room * *rc::gen::element(1e-12, 1e-6, 1e-3, 0.1, 0.5);
  const double step = larger.mean_active - c.mean_active;  // exact: Sterbenz,
                                                           // or k is tiny
  RC_PRE(step > 0 && larger.mean_active < c.n());
  const LapSum s = Solve(c), t = Solve(larger);
  const Vector bounds = WeightBounds(s) + WeightBounds(t);
  const double eta = RootDifference(s, t);
  const double eta_bound = RootDifferenceBound(s, t);
  RC_ASSERT(eta >= 2 * step * (1 - 2 * kDoubleUnit) / c.n() - eta_bound);
  RC_CLASSIFY(2 * step / c.n() > eta_bound, "root strictly falls");
  // Growths are rounded, and so are their sum and the step if k is tiny.
  RC_ASSERT(std::abs(SumOf(t.weights - s.weights) - step) <=
            SumOf(bounds) + 4 * kDoubleUnit * (step + SumOf(bounds)));
  int strict = 0;
  for (int i = 0; i < c.n(); ++i) {
    const double growth = t.weights[i] - s.weights[i];
    RC_ASSERT(growth >= -bounds[i]);
    // 1 - 1e-9 covers the relative errors of the share and of eta.
    const double least =
        s.shares[i] * step * std::exp(-2 * (eta + eta_bound)) * (1 - 1e-9);
    RC_ASSERT(growth >= least - bounds[i] - kDoubleUnit);
    if (least > bounds[i] + kDoubleUnit) {
      ++strict;
      RC_ASSERT(t.weights[i] > s.weights[i]);
    }
  }
  RC_CLASSIFY(strict > 0, "some weight strictly grows");
}

// Law 8: p(r + {s}, k) <= p(r, k) <= p(r + {s}, k + 1). k + 1 is rounded by
// u (k + 1), and dp/dk <= 1.
RC_GTEST_PROP(LapSumLaw, Law08AddingAScoreInterlaces, ()) {
  const LapSumCase c = *LapSumCases(255);
  Classify(c);
  LapSumCase with = c;
  with.scores.push_back(*rc::gen::element(c.scores[0], Max(c.scores),
                                          Max(c.scores) + c.temperature,
                                          Min(c.scores) - 1, 1e6, -1e6));
  LapSumCase with_one_more = with;
  with_one_more.mean_active += 1;
  RC_PRE(with_one_more.mean_active < with.n());
  const LapSum s = Solve(c), low = Solve(with), high = Solve(with_one_more);
  const Vector b = WeightBounds(s), b_low = WeightBounds(low),
               b_high = WeightBounds(high);
  const double rounding = kDoubleUnit * with_one_more.mean_active;
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(low.weights[i] <= s.weights[i] + b[i] + b_low[i]);
    RC_ASSERT(s.weights[i] <= high.weights[i] + b[i] + b_high[i] + rounding);
  }
}

// Law 9.
RC_GTEST_PROP(LapSumLaw, Law09RaisingAScoreTakesFromTheOthers, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const int raised = static_cast<int>(*Uniform(0, c.n()));
  LapSumCase d = c;
  d.scores[raised] += c.temperature * *rc::gen::element(1e-9, 1e-3, 0.5, 10.0);
  const LapSum s = Solve(c), t = Solve(d);
  const Vector bounds = WeightBounds(s) + WeightBounds(t);
  for (int i = 0; i < c.n(); ++i) {
    const double growth = t.weights[i] - s.weights[i];
    RC_ASSERT((i == raised ? growth : -growth) >= -bounds[i]);
  }
}

// Law 11: |p - p'| <= |r - r'|/(2T) in the 2-norm, and (p - p').(r - r') >= 0.
// Norms and products of n terms: relative (n + 4)u.
RC_GTEST_PROP(LapSumLaw, Law11IsLipschitzAndMonotone, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  LapSumCase d = c;
  const double size = c.temperature * *rc::gen::element(1e-6, 1e-2, 1.0, 30.0);
  const std::vector<double> direction = *Directions(c.n());
  for (int i = 0; i < c.n(); ++i) d.scores[i] += size * direction[i];
  const LapSum s = Solve(c), t = Solve(d);
  const Vector dp = s.weights - t.weights;
  const Vector dr = ToVector(c.scores) - ToVector(d.scores);
  const Vector bounds = WeightBounds(s) + WeightBounds(t);
  const double slack = 1 + (c.n() + 8) * kDoubleUnit;
  RC_ASSERT(dp.norm() <= dr.norm() / (2 * c.temperature) * slack +
                             bounds.norm() * slack + kDoubleUnit);
  const double magnitude = dp.cwiseAbs().dot(dr.cwiseAbs());
  RC_ASSERT(dp.dot(dr) >= -bounds.dot(dr.cwiseAbs()) * slack -
                              (c.n() + 8) * kDoubleUnit * magnitude);
}

// Law 12: k max softmax <= 1/2 <=> max p <= 1/2, and then p = k softmax(r/T).
// The exponents err by 2u|w|, where |w| <= |u_i|; the sum by (4 + 2 ln n)u.
RC_GTEST_PROP(LapSumLaw, Law12SmallWeightsAreAScaledSoftmax, ()) {
  LapSumCase c = *LapSumCases();
  if (*Uniform(0, 2) == 0) c.temperature *= 8;  // so that the case is common
  Classify(c);
  const double log_n = std::log(static_cast<double>(c.n()));
  const LapSum s = Solve(c);
  const Vector scaled =
      c.mean_active * reference::Softmax(ToVector(c.scores) / c.temperature);
  const double softmax_error =
      kDoubleUnit *
      (16 + 4 * log_n + 4 * LargestMagnitude(c.scores) / c.temperature);
  const double largest = scaled.maxCoeff();
  const Vector bounds = WeightBounds(s);
  const bool small = largest <= 0.5 * (1 - softmax_error);
  const bool large = largest >= 0.5 * (1 + softmax_error);
  RC_CLASSIFY(small, "k max softmax < 1/2");
  if (small) RC_ASSERT(s.weights.maxCoeff() <= 0.5 + bounds.maxCoeff());
  if (large) RC_ASSERT(s.weights.maxCoeff() >= 0.5 - bounds.maxCoeff());
  if (small) {
    for (int i = 0; i < c.n(); ++i) {
      RC_ASSERT(std::abs(s.weights[i] - scaled[i]) <=
                bounds[i] + softmax_error * scaled[i] + kTiny);
    }
  }
}

// Law 13: T ln(2(n-k)/sum e^{-r/T}) <= x~ <= T ln(sum e^{r/T}/(2k)), both
// written from an extreme score; and its consequences for the weights.
RC_GTEST_PROP(LapSumLaw, Law13SoftmaxBoundsTheRoot, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const Vector r = ToVector(c.scores);
  const double k = c.mean_active, T = c.temperature;
  const double top = Max(c.scores), bottom = Min(c.scores);
  // T has the sums seen from the top score, and from the bottom one.
  const Vector from_top = ((r.array() - top) / T).exp();
  const Vector from_bottom = ((bottom - r.array()) / T).exp();
  LapSum high = s, low = s;
  high.anchor = top;
  high.offset = std::log(SumOf(from_top) / (2 * k));
  low.anchor = bottom;
  low.offset = std::log(2 * (c.n() - k) / SumOf(from_bottom));
  // Their offsets are computed like the root's own and err likewise.
  RC_ASSERT(RootDifference(high, s) >= -RootDifferenceBound(high, s));
  RC_ASSERT(RootDifference(s, low) >= -RootDifferenceBound(s, low));

  const double log_n = std::log(static_cast<double>(c.n()));
  const Vector bounds = WeightBounds(s);
  for (int i = 0; i < c.n(); ++i) {
    const double p = s.weights[i];
    const double share = k * from_top[i] / SumOf(from_top);
    const double other = (c.n() - k) * from_bottom[i] / SumOf(from_bottom);
    // Exponents of magnitude w err by 2uw; w e^-w <= 1/e.
    const double relative = kDoubleUnit * (16 + 4 * log_n);
    if (p <= 0.5) {
      RC_ASSERT(p >= share * (1 - relative) - bounds[i] -
                         2 * kDoubleUnit * k * (top - c.scores[i]) / T *
                             from_top[i]);
    } else {
      RC_ASSERT(1 - p >= other * (1 - relative) - bounds[i] - kDoubleUnit -
                             2 * kDoubleUnit * (c.n() - k) *
                                 (c.scores[i] - bottom) / T * from_bottom[i]);
    }
  }
}

// Law 14: #{p >= 1/2} <= 2k and #{p > theta} < k/theta: at most E/tau experts
// are active at cutoff tau k/E. A weight counts only if it certainly exceeds
// the limit.
RC_GTEST_PROP(LapSumLaw, Law14FewWeightsAreLarge, ()) {
  const LapSumCase c = *LapSumCases();
  Classify(c);
  const LapSum s = Solve(c);
  const Vector surely = s.weights - WeightBounds(s);
  const double theta = static_cast<double>(*Uniform(1, 1 << 20)) * 0x1p-20;
  int half = 0, above = 0;
  for (double p : surely) {
    half += p >= 0.5;
    above += p > theta;
  }
  RC_ASSERT(half <= 2 * c.mean_active);
  RC_ASSERT(above == 0 || above * theta < c.mean_active);
}

// Law 15: for integer k and a gap g > 0 below the k-th score, what is missing
// at the top is what leaks to the rest, at most sqrt(k(n-k))/2 e^{-g/(2T)}.
RC_GTEST_PROP(LapSumLaw, Law15LeaksLittleAcrossAGap, ()) {
  LapSumCase c = *LapSumCases();
  RC_PRE(c.n() > 1);
  Classify(c);
  const int k = static_cast<int>(*Uniform(1, c.n()));
  c.mean_active = k;
  std::vector<double> sorted = c.scores;
  std::sort(sorted.begin(), sorted.end(), std::greater<double>());
  RC_PRE(sorted[k - 1] > sorted[k]);
  const LapSum s = Solve(c);
  const Vector bounds = WeightBounds(s);
  reference::Vector missing = Vector::Zero(c.n()), leaked = missing;
  for (int i = 0; i < c.n(); ++i) {
    (c.scores[i] >= sorted[k - 1] ? missing[i] = 1 - s.weights[i]
                                  : leaked[i] = s.weights[i]);
  }
  const double gap = (sorted[k - 1] - sorted[k]) / c.temperature;
  const double limit = 0.5 * std::sqrt(static_cast<double>(k) * (c.n() - k)) *
                       std::exp(-gap / 2) * (1 + kDoubleUnit * (gap + 8));
  const double error = SumOf(bounds) + 2 * kDoubleUnit * (c.n() + 1);
  RC_CLASSIFY(limit < 1e-3, "sharp");
  RC_ASSERT(std::abs(SumOf(missing) - SumOf(leaked)) <= error);
  RC_ASSERT(SumOf(leaked) <= limit + error);
  RC_ASSERT(SumOf(missing) <= limit + error);
}

// Law 16: |p_i - p_j| <= |r_i - r_j|/(2T) and
// |p_i - k/n| <= (max r - min r)/(2T): uniform as T grows.
RC_GTEST_PROP(LapSumLaw, Law16IsUniformAtHighTemperature, ()) {
  LapSumCase c = *LapSumCases();
  if (*Uniform(0, 2) == 0) c.temperature *= 1e3;
  Classify(c);
  const LapSum s = Solve(c);
  const Vector bounds = WeightBounds(s);
  const double range = (Max(c.scores) - Min(c.scores)) / (2 * c.temperature);
  const double uniform = c.mean_active / c.n();
  RC_CLASSIFY(range < 1e-3, "nearly uniform");
  for (int i = 0; i < c.n(); ++i) {
    RC_ASSERT(std::abs(s.weights[i] - uniform) <=
              range * (1 + 4 * kDoubleUnit) + bounds[i] + kDoubleUnit);
    const int j = (i + 1) % c.n();
    const double apart =
        std::abs(c.scores[i] - c.scores[j]) / (2 * c.temperature);
    RC_ASSERT(std::abs(s.weights[i] - s.weights[j]) <=
              apart * (1 + 4 * kDoubleUnit) + bounds[i] + bounds[j] +
                  kDoubleUnit);
  }
}

}  // namespace
}  // namespace softmoe::property_tests
