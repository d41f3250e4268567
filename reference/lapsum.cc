// SPDX-License-Identifier: Apache-2.0
#include "reference/lapsum.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/errors.h"
#include "reference/lapsum_root.h"
#include "reference/scalar.h"

namespace softmoe::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void CheckInputs(const Vector& scores, double mean_active, double temperature) {
  if (!(temperature > 0) || !std::isfinite(temperature)) {
    throw ConfigError(
        fmt::format("LapSum: temperature is {}; it must be a finite number "
                    "above 0",
                    temperature));
  }
  if (std::isnan(mean_active)) {
    throw NumericsError(
        "LapSum: mean_active is NaN; it must be a number of experts");
  }
  for (Eigen::Index i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i]) || scores[i] == kInfinity) {
      throw NumericsError(
          fmt::format("LapSum: score {} of {} is {}; scores must be finite, or "
                      "-inf to mask an expert",
                      i, scores.size(), scores[i]));
    }
  }
}

// The finite scores, largest first.
std::vector<double> SortedFiniteScores(const Vector& scores,
                                       double mean_active) {
  std::vector<double> sorted;
  for (double score : scores) {
    if (std::isfinite(score)) sorted.push_back(score);
  }
  const bool has_mask =
      static_cast<Eigen::Index>(sorted.size()) < scores.size();
  const double num_finite = static_cast<double>(sorted.size());
  if (sorted.empty() || (has_mask && mean_active >= num_finite)) {
    throw ConfigError(
        fmt::format("LapSum: {} of {} scores are finite, which is not more "
                    "than mean_active = {}; mask fewer experts",
                    sorted.size(), scores.size(), mean_active));
  }
  std::sort(sorted.begin(), sorted.end(), std::greater<double>());
  return sorted;
}

// |u_i| up to a constant that all scores share, which softmax(-|u|) ignores.
double RelativeDistance(const LapSumRoot<double>& root, double score,
                        double argument, double temperature) {
  if (!root.balanced) return std::abs(argument);
  // |u_i| - half_gap, from the near end of the gap: for a gap of 1e6 T the
  // argument itself is only known to 1e-10.
  return score >= root.upper
             ? (score - root.upper) / temperature - root.half_log_ratio
             : (root.lower - score) / temperature + root.half_log_ratio;
}

double CompensatedDot(const Vector& a, const Vector& b) {
  CompensatedSum sum;
  for (Eigen::Index i = 0; i < a.size(); ++i) sum.Add(a[i] * b[i]);
  return sum.Get();
}

}  // namespace

LapSum SolveLapSum(const Vector& scores, double mean_active,
                   double temperature) {
  CheckInputs(scores, mean_active, temperature);
  const std::vector<double> sorted = SortedFiniteScores(scores, mean_active);
  const LapSumRoot<double> root =
      SolveLapSumRoot(sorted, mean_active, temperature);

  const Eigen::Index n = scores.size();
  LapSum solution;
  solution.temperature = temperature;
  solution.anchor = root.anchor;
  solution.offset = root.offset;
  solution.arguments =
      formula::LapSumArguments<double>(scores, root, temperature);
  solution.weights = formula::LapSumWeights<double>(solution.arguments);
  solution.densities = formula::LapSumDensities<double>(solution.arguments);
  solution.shares.resize(n);

  Vector distances(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    if (std::isinf(root.anchor)) {
      // Limits k -> 0 and k -> n: q = softmax(r/T) and softmax(-r/T).
      distances[i] = root.anchor > 0
                         ? (sorted.front() - scores[i]) / temperature
                         : (scores[i] - sorted.back()) / temperature;
    } else {
      distances[i] =
          RelativeDistance(root, scores[i], solution.arguments[i], temperature);
    }
  }

  const double nearest = distances.minCoeff();
  CompensatedSum normalizer;
  for (Eigen::Index i = 0; i < n; ++i) {
    solution.shares[i] = std::exp(nearest - distances[i]);
    normalizer.Add(solution.shares[i]);
  }
  solution.shares /= normalizer.Get();
  solution.min_distance = solution.arguments.cwiseAbs().minCoeff();
  solution.share_normalizer = normalizer.Get();
  return solution;
}

LapSumGradient LapSumVjp(const LapSum& solution, const Vector& d_weights) {
  SOFTMOE_CHECK(d_weights.size() == solution.weights.size());
  return formula::LapSumVjp<double>(solution, d_weights);
}

Vector LapSumJvp(const LapSum& solution, const Vector& scores_dot,
                 double mean_active_dot, double temperature_dot) {
  SOFTMOE_CHECK(scores_dot.size() == solution.weights.size());
  const double mean_argument = formula::MeanArgument(solution);
  const double root_dot = CompensatedDot(solution.shares, scores_dot);
  Vector weights_dot(scores_dot.size());
  for (Eigen::Index i = 0; i < scores_dot.size(); ++i) {
    const double from_scores =
        solution.densities[i] * (scores_dot[i] - root_dot);
    const double from_temperature =
        -formula::CenteredArgument(solution, mean_argument, i) *
        temperature_dot;
    weights_dot[i] = (from_scores + from_temperature) / solution.temperature +
                     solution.shares[i] * mean_active_dot;
  }
  return weights_dot;
}

LapSumGradient LapSumRootGradient(const LapSum& solution) {
  LapSumGradient gradient;
  gradient.d_scores = solution.shares;
  // -T / sum f, with sum f = e^-min_distance * share_normalizer / 2.
  gradient.d_mean_active = -2 * solution.temperature *
                           std::exp(solution.min_distance) /
                           solution.share_normalizer;
  gradient.d_temperature = std::isinf(solution.anchor)
                               ? solution.anchor
                               : -formula::MeanArgument(solution);
  return gradient;
}

}  // namespace softmoe::reference
