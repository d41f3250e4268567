// SPDX-License-Identifier: Apache-2.0
#include "reference/lapsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/errors.h"
#include "reference/compensated_sum.h"
#include "reference/laplace.h"

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

// a_j = sum_{i<=j} e^{-(s_i - s_j)/T}, j = 1..n: the scores from s_j up, seen
// from s_j. In [1, j].
double SumAbove(const std::vector<double>& s, int j, double temperature) {
  CompensatedSum sum;
  for (int i = 1; i <= j; ++i) {
    sum.Add(std::exp(-(s[i - 1] - s[j - 1]) / temperature));
  }
  return sum.Get();
}

// b_j = sum_{i>=j} e^{(s_i - s_j)/T}, j = 1..n: the scores from s_j down.
double SumBelow(const std::vector<double>& s, int j, double temperature) {
  CompensatedSum sum;
  for (int i = j; i <= static_cast<int>(s.size()); ++i) {
    sum.Add(std::exp((s[i - 1] - s[j - 1]) / temperature));
  }
  return sum.Get();
}

// S(s_j) = j - (a_j - (b_j - 1))/2.
double NodeValue(const std::vector<double>& s, int j, double temperature) {
  return j - 0.5 * (SumAbove(s, j, temperature) -
                    (SumBelow(s, j, temperature) - 1));
}

// The root as anchor + T*offset. When k = j exactly, the root lies near the
// middle of a gap that may be so wide that an offset from s_j cannot resolve
// what lies beyond s_{j+1}; `balanced` then says to use both ends.
struct Root {
  double anchor = 0;
  double offset = 0;
  bool balanced = false;  // d = 0: top j and the rest share sum f half and half
  double upper = 0;       // s_j
  double lower = 0;       // s_{j+1}
  double half_log_ratio = 0;  // ln(b_{j+1}/a_j) / 2
};

Root SolveRoot(const std::vector<double>& s, double k, double temperature) {
  const int n = static_cast<int>(s.size());
  if (k <= 0) return {.anchor = kInfinity};
  if (k >= n) return {.anchor = -kInfinity};

  // x~ is in segment j: x~ <= s_1..s_j, and above the rest. S_j >= j/2, so
  // this looks at no more than ceil(2k) scores.
  int j = 0;
  while (j < n && NodeValue(s, j + 1, temperature) < k) ++j;

  if (j == 0) {
    const double b = SumBelow(s, 1, temperature);
    // For k near the smallest double the quotient overflows, a log does not.
    const double offset =
        k > 1e-300 ? std::log(b / (2 * k)) : std::log(b / 2) - std::log(k);
    return {.anchor = s[0], .offset = offset};
  }
  if (j == n) {
    const double a = SumAbove(s, n, temperature);
    return {.anchor = s[n - 1], .offset = std::log(2 * (n - k) / a)};
  }

  // On segment j: a z^2 - 2 d z - h^2/a = 0 for z = e^{(x - s_j)/T}. The two
  // forms of its positive root avoid cancellation. No clamping of the offset
  // to the segment: NOTATION.md#lapsum.
  const double a = SumAbove(s, j, temperature);
  const double b = SumBelow(s, j + 1, temperature);
  const double half_gap = 0.5 * (s[j - 1] - s[j]) / temperature;
  const double h = std::exp(-half_gap) * std::sqrt(a * b);
  const double d = j - k;
  if (d > 0) {
    return {.anchor = s[j - 1], .offset = std::log((d + std::hypot(d, h)) / a)};
  }
  if (d < 0) {
    return {.anchor = s[j], .offset = std::log(b / (-d + std::hypot(d, h)))};
  }
  const double half_log_ratio = 0.5 * std::log(b / a);
  return {
      .anchor = s[j - 1],
      // Finite even where the gap is not, so that r - x~ is never inf - inf.
      .offset = -std::min(half_gap, 0x1p1000) + half_log_ratio,
      .balanced = true,
      .upper = s[j - 1],
      .lower = s[j],
      .half_log_ratio = half_log_ratio};
}

// |u_i| up to a constant that all scores share, which softmax(-|u|) ignores.
double RelativeDistance(const Root& root, double score, double argument,
                        double temperature) {
  if (!root.balanced) return std::abs(argument);
  // |u_i| - half_gap, from the near end of the gap: for a gap of 1e6 T the
  // argument itself is only known to 1e-10.
  return score >= root.upper
             ? (score - root.upper) / temperature - root.half_log_ratio
             : (root.lower - score) / temperature + root.half_log_ratio;
}

// ubar = sum_i q_i u_i. A share of 0 may meet an infinite argument.
double MeanArgument(const LapSum& solution) {
  CompensatedSum sum;
  for (Eigen::Index i = 0; i < solution.shares.size(); ++i) {
    if (solution.shares[i] > 0) {
      sum.Add(solution.shares[i] * solution.arguments[i]);
    }
  }
  return sum.Get();
}

// f_i (u_i - ubar) = -T dp_i/dT; 0 where f_i is, whatever u_i.
double CenteredArgument(const LapSum& solution, double mean_argument,
                        Eigen::Index i) {
  if (solution.densities[i] == 0) return 0;
  return solution.densities[i] * (solution.arguments[i] - mean_argument);
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
  const Root root = SolveRoot(sorted, mean_active, temperature);

  const Eigen::Index n = scores.size();
  LapSum solution;
  solution.temperature = temperature;
  solution.anchor = root.anchor;
  solution.offset = root.offset;
  solution.arguments.resize(n);
  solution.weights.resize(n);
  solution.densities.resize(n);
  solution.shares.resize(n);

  Vector distances(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const double u = (scores[i] - root.anchor) / temperature - root.offset;
    solution.arguments[i] = u;
    solution.weights[i] = LaplaceCdf(u);
    solution.densities[i] = LaplacePdf(u);
    if (std::isinf(root.anchor)) {
      // Limits k -> 0 and k -> n: q = softmax(r/T) and softmax(-r/T).
      distances[i] = root.anchor > 0
                         ? (sorted.front() - scores[i]) / temperature
                         : (scores[i] - sorted.back()) / temperature;
    } else {
      distances[i] = RelativeDistance(root, scores[i], u, temperature);
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
  const double mean_argument = MeanArgument(solution);
  LapSumGradient gradient;
  gradient.d_mean_active = CompensatedDot(solution.shares, d_weights);
  gradient.d_scores =
      (solution.densities.array() *
       (d_weights.array() - gradient.d_mean_active) / solution.temperature)
          .matrix();
  CompensatedSum sum;
  for (Eigen::Index i = 0; i < d_weights.size(); ++i) {
    sum.Add(CenteredArgument(solution, mean_argument, i) * d_weights[i]);
  }
  gradient.d_temperature = -sum.Get() / solution.temperature;
  return gradient;
}

Vector LapSumJvp(const LapSum& solution, const Vector& scores_dot,
                 double mean_active_dot, double temperature_dot) {
  SOFTMOE_CHECK(scores_dot.size() == solution.weights.size());
  const double mean_argument = MeanArgument(solution);
  const double root_dot = CompensatedDot(solution.shares, scores_dot);
  Vector weights_dot(scores_dot.size());
  for (Eigen::Index i = 0; i < scores_dot.size(); ++i) {
    const double from_scores =
        solution.densities[i] * (scores_dot[i] - root_dot);
    const double from_temperature =
        -CenteredArgument(solution, mean_argument, i) * temperature_dot;
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
  gradient.d_temperature =
      std::isinf(solution.anchor) ? solution.anchor : -MeanArgument(solution);
  return gradient;
}

}  // namespace softmoe::reference
