// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/finite_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/errors.h"

namespace softmoe::reference::testing {
namespace {

constexpr int kLevels = 10;  // steps: step, step/2, ..., step/512
// Rounding errors are taken to stay below this many standard deviations.
constexpr double kNoiseSigmas = 6;
// A difference is usable for an observed order if it exceeds its rounding bound
// by this factor: the order is then wrong by log2(1.125/0.875) = 0.36 at worst,
// so that 1.5 separates order 2 (smooth) from order 1 and less, and 0.5
// separates order 1 from order 0.
constexpr double kUsable = 8;
// The spacing at which noise is measured, in steps: so small that the fourth
// difference of a function that the step resolves is below an ulp, while the
// points still differ in many bits. Not a power of two: on dyadic points
// roundings repeat instead of scattering.
constexpr double kNoiseSpacing = 1.618e-6;

double Evaluate(const std::function<double(double)>& phi, double h) {
  const double value = phi(h);
  if (!std::isfinite(value)) {
    std::ostringstream message;
    message << "finite differences: the function is " << value << " at " << h
            << "; choose a smaller step or a point inside its domain";
    throw NumericsError(message.str());
  }
  return value;
}

// The error of one of the two values of a difference: the noise around 0, or
// the rounding of a value of this size, which may be larger than those around
// 0.
double DifferenceError(double noise, double size) {
  return std::max(kNoiseSigmas * noise,
                  size * std::numeric_limits<double>::epsilon());
}

struct Samples {
  double centre;
  std::array<double, kLevels> step, plus, minus;

  double Central(int i) const { return (plus[i] - minus[i]) / (2 * step[i]); }
  double Right(int i) const { return (plus[i] - centre) / step[i]; }
  double Left(int i) const { return (centre - minus[i]) / step[i]; }
};

// The order of convergence log2(d_{i-1} / d_i) of a sequence at halved steps;
// NaN unless both terms exceed `bound`, -inf if they differ in sign.
double OrderAt(const std::array<double, kLevels>& d,
               const std::array<double, kLevels>& bound, int i) {
  if (std::abs(d[i]) > kUsable * bound[i] &&
      std::abs(d[i - 1]) > kUsable * bound[i - 1]) {
    const double ratio = d[i - 1] / d[i];
    return ratio > 0 ? std::log2(ratio)
                     : -std::numeric_limits<double>::infinity();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The last i < size at which there is an order; 0 if there is none.
int FinestOrder(const std::array<double, kLevels>& d,
                const std::array<double, kLevels>& bound, int size) {
  int i = size - 1;
  while (i > 0 && std::isnan(OrderAt(d, bound, i))) --i;
  return i;
}

// True for an order that central differences of a smooth function have: 2, or
// a higher even number where the lower terms vanish.
bool IsSmoothOrder(double order) {
  return order > 1.5 && std::abs(order - 2 * std::round(order / 2)) <= 0.5;
}

// The entry of a Ridders table with the smallest error estimate. `first` are
// the differences of column 0 and `rounding` the rounding error of each; column
// j removes the term in h^(j log2(base)). The change made by the last column
// overestimates the error that is left. The rounding error of an entry is at
// most prod (base^j + 1)/(base^j - 1) times that of its finest difference: < 2
// for base 4, < 8.3 for base 2.
struct TableEntry {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();
};
TableEntry Extrapolate(const std::array<double, kLevels>& first,
                       const std::array<double, kLevels>& rounding,
                       double base) {
  const double amplification = base == 4 ? 2 : 8.3;
  std::array<std::array<double, kLevels>, kLevels> table;
  TableEntry best;
  for (int i = 0; i < kLevels; ++i) {
    table[i][0] = first[i];
    double power = 1;
    for (int j = 1; j <= i; ++j) {
      power *= base;
      table[i][j] =
          (power * table[i][j - 1] - table[i - 1][j - 1]) / (power - 1);
      const double truncation =
          std::max(std::abs(table[i][j] - table[i][j - 1]),
                   std::abs(table[i][j] - table[i - 1][j - 1]));
      const double error = truncation + amplification * rounding[i];
      if (error < best.error) best = {table[i][j], error};
    }
  }
  return best;
}

Smoothness Classify(const Samples& samples, double noise,
                    DerivativeEstimate* estimate) {
  std::array<double, kLevels> central{}, gap{}, slope_bound{}, gap_bound{};
  int finest = 0;  // finest step at which the two slopes can be told apart
  for (int i = 0; i < kLevels; ++i) {
    slope_bound[i] = 2 * kNoiseSigmas * noise / samples.step[i];
    gap_bound[i] = 2 * slope_bound[i];
    gap[i] = samples.Right(i) - samples.Left(i);
    if (i + 1 < kLevels) {
      central[i] = samples.Central(i) - samples.Central(i + 1);
    }
    if (std::abs(gap[i]) > kUsable * gap_bound[i]) finest = i;
  }
  // A difference of neighbours mostly carries the rounding of the finer one.
  std::array<double, kLevels> central_bound{};
  for (int i = 0; i + 1 < kLevels; ++i) {
    central_bound[i] = 2 * slope_bound[i + 1];
  }
  estimate->left_slope = samples.Left(finest);
  estimate->right_slope = samples.Right(finest);

  // Central differences converge with order 2 at the finest steps above the
  // noise. Two neighbouring orders are checked, because a jump of the curvature
  // inside the stencil has order 1 except at single steps near it.
  bool converges = true;
  estimate->observed_order = std::numeric_limits<double>::quiet_NaN();
  if (const int i = FinestOrder(central, central_bound, kLevels - 1); i > 0) {
    estimate->observed_order = OrderAt(central, central_bound, i);
    converges = IsSmoothOrder(estimate->observed_order);
    if (i > 1) {
      const double coarser = OrderAt(central, central_bound, i - 1);
      converges = converges && (std::isnan(coarser) || IsSmoothOrder(coarser));
    }
  }
  // The slopes from both sides differ by O(h) if smooth, by O(1) at a kink, by
  // O(1/h) at a jump.
  if (const int i = FinestOrder(gap, gap_bound, kLevels); i > 0) {
    const double order = OrderAt(gap, gap_bound, i);
    if (std::isinf(order)) return Smoothness::kInconclusive;
    if (order < -0.5) return Smoothness::kJump;
    if (order < 0.5) return Smoothness::kKink;
  }
  return converges ? Smoothness::kSmooth : Smoothness::kInconclusive;
}

// Hamming's estimate from phi at spacing, 2 spacing, ...
double OneSidedNoise(const std::function<double(double)>& phi, double spacing) {
  constexpr int kPoints = 12;
  std::array<double, kPoints> table;
  double magnitude = 0;
  for (int i = 0; i < kPoints; ++i) {
    table[i] = Evaluate(phi, (i + 1) * spacing);
    magnitude = std::max(magnitude, std::abs(table[i]));
  }
  // A k-th difference of independent errors of variance s^2 has variance
  // s^2 (2k)!/(k!)^2, while a smooth function leaves nothing but spacing^k.
  // The largest of orders 4 to 6: too large an estimate only costs sharpness.
  double noise = 0;
  double binomial = 1;  // (2k)!/(k!)^2
  for (int k = 1; k <= 6; ++k) {
    binomial *= 2.0 * (2 * k - 1) / k;
    double squares = 0;
    for (int i = 0; i + k < kPoints; ++i) {
      table[i] = table[i + 1] - table[i];
      squares += table[i] * table[i];
    }
    if (k >= 4) {
      noise = std::max(noise, std::sqrt(squares / (kPoints - k) / binomial));
    }
  }
  return std::max(noise,
                  magnitude * std::numeric_limits<double>::epsilon() / 2);
}

}  // namespace

double RoundingNoise(const std::function<double(double)>& phi, double spacing) {
  const double left = OneSidedNoise(phi, -spacing);
  const double right = OneSidedNoise(phi, spacing);
  return std::min(left, right);
}

DerivativeEstimate DifferentiateAtZero(const std::function<double(double)>& phi,
                                       double step, double rounding_error) {
  SOFTMOE_CHECK(step > 0) << "step=" << step;
  Samples samples;
  samples.centre = Evaluate(phi, 0);
  for (int i = 0; i < kLevels; ++i) {
    samples.step[i] = std::ldexp(step, -i);
    samples.plus[i] = Evaluate(phi, samples.step[i]);
    samples.minus[i] = Evaluate(phi, -samples.step[i]);
  }
  DerivativeEstimate estimate;
  estimate.noise = std::max(RoundingNoise(phi, step * kNoiseSpacing),
                            rounding_error / kNoiseSigmas);
  std::array<double, kLevels> central, rounding;
  for (int i = 0; i < kLevels; ++i) {
    central[i] = samples.Central(i);
    const double size =
        std::max(std::abs(samples.plus[i]), std::abs(samples.minus[i]));
    rounding[i] = DifferenceError(estimate.noise, size) / samples.step[i];
  }
  const TableEntry best = Extrapolate(central, rounding, 4);
  estimate.value = best.value;
  estimate.error = best.error;
  estimate.smoothness = Classify(samples, estimate.noise, &estimate);
  return estimate;
}

OneSidedEstimate DifferentiateFromOneSide(
    const std::function<double(double)>& phi, double step,
    double rounding_error) {
  SOFTMOE_CHECK(step != 0);
  const double centre = Evaluate(phi, 0);
  const double noise = std::max(OneSidedNoise(phi, step * kNoiseSpacing),
                                rounding_error / kNoiseSigmas);
  std::array<double, kLevels> slope, rounding, change{}, change_bound{};
  for (int i = 0; i < kLevels; ++i) {
    const double h = std::ldexp(step, -i);
    const double value = Evaluate(phi, h);
    const double size = std::max(std::abs(value), std::abs(centre));
    slope[i] = (value - centre) / h;
    rounding[i] = 2 * DifferenceError(noise, size) / std::abs(h);
    if (i == 0) continue;
    change[i - 1] = slope[i - 1] - slope[i];
    change_bound[i - 1] = 2 * rounding[i];
  }
  const TableEntry best = Extrapolate(slope, rounding, 2);
  OneSidedEstimate estimate = {best.value, best.error,
                               std::numeric_limits<double>::quiet_NaN(), true};
  // Order 1, or a higher whole number where the lower terms vanish.
  if (const int i = FinestOrder(change, change_bound, kLevels - 1); i > 0) {
    const double order = OrderAt(change, change_bound, i);
    estimate.observed_order = order;
    estimate.converges =
        order > 0.5 && std::abs(order - std::round(order)) <= 0.36;
  }
  return estimate;
}

}  // namespace softmoe::reference::testing
