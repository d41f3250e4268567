// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/lapsum_algorithms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace softmoe::property_tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Cdf(double u) {
  return u <= 0 ? 0.5 * std::exp(u) : 1 - 0.5 * std::exp(-u);
}

// A root as anchor + temperature*offset.
struct Root {
  double anchor;
  double offset;
};

AlgorithmResult WeightsAt(const std::vector<double>& scores, const Root& root,
                          double temperature) {
  AlgorithmResult result;
  for (double score : scores) {
    result.weights.push_back(
        Cdf((score - root.anchor) / temperature - root.offset));
  }
  return result;
}

// The root of the equation of one segment: `above` scores >= x, the lowest of
// them `hi`, with sum a = sum e^{-(r-hi)/T}; the rest, the highest `lo`, with
// sum b = sum e^{(r-lo)/T}. SPEC.md 1.2.
Root SegmentRoot(int above, int n, double k, double hi, double lo, double a,
                 double b, double temperature) {
  if (above == 0) return {lo, std::log(b / (2 * k))};
  if (above == n) return {hi, std::log(2 * (n - k) / a)};
  const double gap = (hi - lo) / temperature;
  const double h = std::exp(-gap / 2) * std::sqrt(a * b);
  const double d = above - k;
  if (d > 0) return {hi, std::log((d + std::hypot(d, h)) / a)};
  if (d < 0) return {lo, std::log(b / (-d + std::hypot(d, h)))};
  return {hi, -gap / 2 + 0.5 * std::log(b / a)};
}

// The segment that holds `root`, or the one that `is_above` describes.
template <typename Predicate>
Root RootOfSegment(const std::vector<double>& scores, double k,
                   double temperature, int* count, const Predicate& is_above) {
  int above = 0;
  double hi = kInfinity, lo = -kInfinity;
  for (double score : scores) {
    if (is_above(score)) {
      ++above;
      hi = std::min(hi, score);
    } else {
      lo = std::max(lo, score);
    }
  }
  double a = 0, b = 0;
  for (double score : scores) {
    if (is_above(score)) {
      a += std::exp(-(score - hi) / temperature);
    } else {
      b += std::exp((score - lo) / temperature);
    }
  }
  *count = above;
  return SegmentRoot(above, static_cast<int>(scores.size()), k, hi, lo, a, b,
                     temperature);
}

}  // namespace

AlgorithmResult MonotoneIteration(const std::vector<double>& scores, double k,
                                  double temperature) {
  const int n = static_cast<int>(scores.size());
  // Starts at the softmax bound x_hi, as if every score were below the root.
  int above = 0;
  Root root = RootOfSegment(scores, k, temperature, &above,
                            [](double) { return false; });
  AlgorithmResult result;
  int previous = -1;
  for (int step = 1; step <= n + 2; ++step) {
    const Root from = root;
    root = RootOfSegment(scores, k, temperature, &above, [&](double score) {
      return (score - from.anchor) / temperature - from.offset >= 0;
    });
    result.steps = step;
    // The iterates fall towards the root, so more and more scores lie above
    // them. If the number stays the same, the segment does, and the root is in
    // it. If it falls, an iterate turned back, which only rounding can cause;
    // the caller judges that.
    if (above <= previous) {
      if (above < previous) {
        result.overshoot = (root.anchor - from.anchor) / temperature +
                           (root.offset - from.offset);
      }
      break;
    }
    previous = above;
  }
  result.weights = WeightsAt(scores, root, temperature).weights;
  return result;
}

AlgorithmResult AllPairs(const std::vector<double>& scores, double k,
                         double temperature) {
  // A score is above the root if S there is below k.
  std::vector<double> sums;
  for (double x : scores) {
    double sum = 0;
    for (double score : scores) sum += Cdf((score - x) / temperature);
    sums.push_back(sum);
  }
  // Rounding may separate equal sums, so the scores decide: everything at or
  // above the lowest score whose sum is below k.
  double lowest = kInfinity;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (sums[i] < k) lowest = std::min(lowest, scores[i]);
  }
  int above = 0;
  const Root root =
      RootOfSegment(scores, k, temperature, &above,
                    [&](double score) { return score >= lowest; });
  return WeightsAt(scores, root, temperature);
}

AlgorithmResult PartialSelection(const std::vector<double>& scores, double k,
                                 double temperature) {
  const int n = static_cast<int>(scores.size());
  const int m = std::min(n, static_cast<int>(std::ceil(2 * k)));
  // The m largest, by repeated maximum.
  std::vector<double> rest = scores;
  std::vector<double> top;
  for (int rank = 0; rank < m; ++rank) {
    const auto largest = std::max_element(rest.begin(), rest.end());
    top.push_back(*largest);
    rest.erase(largest);
  }
  // b[j] = sum over scores from the j-th down, seen from it: the tail once,
  // anchored at the m-th, then upwards. a[j] downwards.
  std::vector<double> a(m), b(m);
  double tail = 0;
  for (double score : rest) {
    tail += std::exp((score - top[m - 1]) / temperature);
  }
  b[m - 1] = 1 + tail;
  for (int j = m - 2; j >= 0; --j) {
    b[j] = 1 + b[j + 1] * std::exp(-(top[j] - top[j + 1]) / temperature);
  }
  a[0] = 1;
  for (int j = 1; j < m; ++j) {
    a[j] = 1 + a[j - 1] * std::exp(-(top[j - 1] - top[j]) / temperature);
  }
  int segment = 0;
  while (segment < m &&
         segment + 1 - 0.5 * (a[segment] - (b[segment] - 1)) < k) {
    ++segment;
  }
  // S_m >= m/2 >= k: only rounding can walk past the last of the m.
  if (segment == m && m < n) segment = m - 1;
  Root root{};
  if (segment == 0) {
    root = {top[0], std::log(b[0] / (2 * k))};
  } else if (segment == n) {
    root = {top[n - 1], std::log(2 * (n - k) / a[n - 1])};
  } else {
    root = SegmentRoot(segment, n, k, top[segment - 1], top[segment],
                       a[segment - 1], b[segment], temperature);
  }
  return WeightsAt(scores, root, temperature);
}

AlgorithmResult Bisection(const std::vector<double>& scores, double k,
                          double temperature) {
  // long double, so that the sum's own rounding is negligible at n = 256.
  const auto sum = [&](double x) {
    long double total = 0;
    for (double score : scores) total += Cdf((score - x) / temperature);
    return total;
  };
  const auto [lowest, highest] =
      std::minmax_element(scores.begin(), scores.end());
  double width = temperature;
  double low = *lowest;
  for (; !(sum(low) >= k); width *= 2) low -= width;
  width = temperature;
  double high = *highest;
  for (; !(sum(high) <= k); width *= 2) high += width;
  for (int step = 0; step < 1100; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (sum(middle) >= k ? low : high) = middle;
  }
  return WeightsAt(scores, {low, 0}, temperature);
}

}  // namespace softmoe::property_tests
