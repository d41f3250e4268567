// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/regime_curve.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

// The sum of squares may have two minima, one of them at an end: the lower one
// is found if they are more than one step of this grid apart.
constexpr int kGridSteps = 64;
// Enough halvings of a grid step to exhaust a double's digits.
constexpr int kHalvings = 60;

// y = mean_y + slope * (x - mean_x), by least squares, with x = k^-p.
struct SmoothFit {
  std::vector<double> x;
  double mean_x = 0, mean_y = 0, slope = 0;
  double explained = 0;  // squared deviations of y from its mean

  SmoothFit(const std::vector<double>& k, const std::vector<double>& y,
            double exponent) {
    for (const double each : k) x.push_back(std::pow(each, -exponent));
    mean_x = Mean(x);
    mean_y = Mean(y);
    double products = 0, squares = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      products += (x[i] - mean_x) * (y[i] - mean_y);
      squares += (x[i] - mean_x) * (x[i] - mean_x);
    }
    slope = products / squares;
    explained = products * slope;
  }

  double At(double value) const { return mean_y + slope * (value - mean_x); }
};

// Half of the derivative with respect to p of the sum of squared residuals.
double SlopeOfSquares(const std::vector<double>& k,
                      const std::vector<double>& losses, double exponent) {
  const SmoothFit fit(k, losses, exponent);
  double sum = 0;
  for (size_t i = 0; i < k.size(); ++i) {
    sum += (losses[i] - fit.At(fit.x[i])) * std::log(k[i]) * fit.x[i];
  }
  return fit.slope * sum;
}

double ReadLinearCurve(const std::vector<double>& k,
                       const std::vector<double>& losses, double active) {
  const auto above = std::upper_bound(k.begin() + 1, k.end() - 1, active);
  const auto i = static_cast<size_t>(above - k.begin());
  const double share = (active - k[i - 1]) / (k[i] - k[i - 1]);
  return losses[i - 1] + share * (losses[i] - losses[i - 1]);
}

RegimeReading Around(double estimate, double error, double freedom,
                     double confidence) {
  const double half = StudentQuantile((1 + confidence) / 2, freedom) * error;
  return {estimate, error, {estimate - half, estimate + half}};
}

}  // namespace

double SmoothExponent(const std::vector<double>& k,
                      const std::vector<double>& losses,
                      const Interval& exponents) {
  const double first = std::log(exponents.low);
  const double step = (std::log(exponents.high) - first) / kGridSteps;
  int best = 0;
  double most = -1;
  for (int i = 0; i <= kGridSteps; ++i) {
    const SmoothFit fit(k, losses, std::exp(first + step * i));
    if (fit.explained > most) {
      most = fit.explained;
      best = i;
    }
  }
  // The squares fall before the minimum and rise after it; at an end of the
  // range only one side exists.
  double low = first + step * std::max(best - 1, 0);
  double high = first + step * std::min(best + 1, kGridSteps);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    if (SlopeOfSquares(k, losses, std::exp(middle)) < 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return std::exp(low);
}

double ReadSmoothCurve(const std::vector<double>& k,
                       const std::vector<double>& losses, double exponent,
                       double active) {
  return SmoothFit(k, losses, exponent).At(std::pow(active, -exponent));
}

RegimeDistances DistancesFromCurve(const RegimeTable& table,
                                   const Interval& exponents) {
  std::vector<double> means(table.k.size());
  for (const std::vector<double>& of_seed : table.sparse) {
    for (size_t i = 0; i < means.size(); ++i) {
      means[i] += of_seed[i] / static_cast<double>(table.sparse.size());
    }
  }
  RegimeDistances distances;
  distances.exponent = SmoothExponent(table.k, means, exponents);
  for (size_t s = 0; s < table.sparse.size(); ++s) {
    const std::vector<double>& sparse = table.sparse[s];
    const auto rows = static_cast<double>(table.loss[s].size());
    const SmoothFit fit(table.k, sparse, distances.exponent);
    double linear = 0, smooth = 0;
    for (size_t r = 0; r < table.loss[s].size(); ++r) {
      const double active = table.active[s][r], loss = table.loss[s][r];
      SOFTMOE_CHECK(active >= table.k.front() && active <= table.k.back())
          << active;
      linear += loss - ReadLinearCurve(table.k, sparse, active);
      smooth += loss - fit.At(std::pow(active, -distances.exponent));
    }
    distances.linear.push_back(linear / rows);
    distances.smooth.push_back(smooth / rows);
  }
  return distances;
}

RegimeReading ReadingOf(const std::vector<double>& numbers, double confidence) {
  SOFTMOE_CHECK(numbers.size() >= 2);
  return Around(Mean(numbers), ErrorOfMean(numbers),
                static_cast<double>(numbers.size()) - 1, confidence);
}

RegimeStatus DecideRegime(const std::vector<RegimeReading>& readings,
                          double margin) {
  auto below = [&](double limit) {
    return std::ranges::all_of(readings, [&](const RegimeReading& reading) {
      return reading.interval.high < limit;
    });
  };
  if (below(0)) return RegimeStatus::kSuperior;
  if (below(margin)) return RegimeStatus::kMatches;
  return IsWorse(readings) ? RegimeStatus::kInferior : RegimeStatus::kUndecided;
}

bool IsWorse(const std::vector<RegimeReading>& readings) {
  return std::ranges::all_of(readings, [](const RegimeReading& reading) {
    return reading.interval.low > 0;
  });
}

RegimeReading DifferenceOf(const std::vector<double>& first,
                           const std::vector<double>& second,
                           double confidence) {
  SOFTMOE_CHECK(first.size() >= 2 && second.size() >= 2);
  const auto n = static_cast<double>(first.size());
  const auto m = static_cast<double>(second.size());
  const double squares = SquaresAroundMean(first) + SquaresAroundMean(second);
  return Around(Mean(first) - Mean(second),
                std::sqrt(squares / (n + m - 2) * (1 / n + 1 / m)), n + m - 2,
                confidence);
}

}  // namespace softmoe::golden
