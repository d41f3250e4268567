// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/lapsum_bounds.h"

#include <cmath>

#include "reference/scalar.h"

namespace softmoe::property_tests {

using reference::LapSum;
using reference::Vector;

Vector ToVector(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(),
                                  static_cast<Eigen::Index>(values.size()));
}

LapSum Solve(const LapSumCase& lapsum_case) {
  return reference::SolveLapSum(ToVector(lapsum_case.scores),
                                lapsum_case.mean_active,
                                lapsum_case.temperature);
}

Vector WeightBounds(const LapSum& solution) {
  const Eigen::Index n = solution.weights.size();
  const double log_n = std::log(static_cast<double>(n));
  const double t = std::abs(solution.offset);
  Vector bounds(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double f = solution.densities[i];
    const double u = solution.arguments[i];
    double bound = u > 0 ? 0.5 : 0;
    if (f > 0) bound += f * (3 * std::abs(u) + 5 * t + 16 + 5 * log_n);
    bounds[i] = kDoubleUnit * bound + kTiny;
  }
  return bounds;
}

double RootBound(const LapSum& solution) {
  const double log_n = std::log(static_cast<double>(solution.weights.size()));
  return kDoubleUnit * (14 + 5 * log_n + 3 * std::abs(solution.offset));
}

double RootDifference(const LapSum& a, const LapSum& b) {
  return (a.anchor - b.anchor) / a.temperature + (a.offset - b.offset);
}

double RootDifferenceBound(const LapSum& a, const LapSum& b) {
  const double anchors = std::abs(a.anchor - b.anchor) / a.temperature;
  const double offsets = std::abs(a.offset) + std::abs(b.offset);
  // Two roundings for the anchors, one for the offsets, one for the sum.
  return RootBound(a) + RootBound(b) +
         kDoubleUnit * (3 * anchors + 2 * offsets);
}

double DensityShareBound(const LapSum& solution) {
  double bound = 0;
  for (Eigen::Index i = 0; i < solution.weights.size(); ++i) {
    const double f = solution.densities[i];
    if (f == 0) continue;
    bound += f * (2 * std::abs(solution.arguments[i]) +
                  2 * std::abs(solution.offset) + 16);
  }
  return kDoubleUnit * bound + kTiny;
}

double SumOf(const Vector& values) {
  reference::CompensatedSum sum;
  for (double value : values) sum.Add(value);
  return sum.Get();
}

}  // namespace softmoe::property_tests
