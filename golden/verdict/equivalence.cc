// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/equivalence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>

#include "core/errors.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rounding alone: all differences of values within the two intervals.
Interval RoundingInterval(const Cell& ours, const Cell& golden) {
  return {ours.low - golden.high, ours.high - golden.low};
}

// How far all values within the intervals lie outside +-margin; at most zero if
// some lie inside.
double Excess(const Interval& rounding, double margin) {
  return std::max(rounding.low - margin, -margin - rounding.high);
}

// The p-value of a difference that lies `excess` outside +-margin, by both
// tails: of all true differences within it, the nearer end makes one as large
// as this most likely.
template <typename Cdf>
double POutside(double excess, double margin, double error, const Cdf& cdf) {
  if (!(excess > 0)) return 1;
  if (error == 0) return 0;
  return cdf(-excess / error) + cdf(-(excess + 2 * margin) / error);
}

struct CellNoise {
  double below = 0, above = 0;  // the interval's extent on either side
  double p_outside = 1;
};

CellNoise SeedNoise(int64_t runs, int64_t golden_runs,
                    const PooledDeviation& pool, double excess, double margin) {
  if (!pool.known()) return {kInfinity, kInfinity, 1};
  const double error =
      pool.deviation * std::sqrt(1.0 / static_cast<double>(runs) +
                                 1.0 / static_cast<double>(golden_runs));
  const double half = StudentQuantile(1 - kLevel, pool.freedom) * error;
  return {half, half, POutside(excess, margin, error, [&](double t) {
            return StudentCdf(t, pool.freedom);
          })};
}

// The noise of the items counted by a percentage; none for other numbers.
CellNoise ItemNoise(const Cell& ours, const Cell& golden,
                    const PooledDeviation& pool, double excess, double margin) {
  if (!ours.proportion || !golden.proportion) return {};
  if (pool.flip_share) {
    const double error = std::hypot(FlipDeviation(*pool.flip_share, ours),
                                    FlipDeviation(*pool.flip_share, golden));
    const double half = NormalQuantile(1 - kLevel) * error;
    return {half, half, POutside(excess, margin, error, NormalCdf)};
  }
  auto fraction = [](const Cell& cell) {
    return std::clamp(cell.value / 100, 0.0, 1.0);
  };
  const double p = fraction(ours), q = fraction(golden);
  const Interval interval = ProportionDifference(
      p, static_cast<double>(ours.proportion->total), q,
      static_cast<double>(golden.proportion->total), 1 - 2 * kLevel);
  CellNoise noise;
  noise.below = 100 * (p - q - interval.low);
  noise.above = 100 * (interval.high - (p - q));
  // The interval's side towards the margin.
  const double half = p > q ? noise.below : noise.above;
  noise.p_outside =
      POutside(excess, margin, half / NormalQuantile(1 - kLevel), NormalCdf);
  return noise;
}

// What the cells of one set of trainings say about a number: its mean, weighted
// by n - 1. The cell with the most runs gives the number of trainings.
struct SeedEvidence {
  double sum = 0, weights = 0, freedom = 0;
  void Add(double value, const Cell& cell) {
    const auto own = static_cast<double>(cell.runs - 1);
    sum += own * value;
    weights += own;
    freedom = std::max(freedom, own);
  }
};

double FreedomOf(const std::map<size_t, SeedEvidence>& all) {
  double freedom = 0;
  for (const auto& [trainings, of] : all) freedom += of.freedom;
  return freedom;
}

double PooledMean(const std::map<size_t, SeedEvidence>& all) {
  double sum = 0;
  for (const auto& [trainings, of] : all) {
    sum += of.sum * (of.freedom / of.weights);
  }
  return sum / FreedomOf(all);
}

}  // namespace

PooledDeviation Pool(const std::vector<const Cell*>& cells,
                     const std::vector<size_t>& trainings) {
  SOFTMOE_CHECK(trainings.empty() || trainings.size() == cells.size());
  std::map<size_t, SeedEvidence> squares, constant, flips;
  for (size_t c = 0; c < cells.size(); ++c) {
    const Cell& cell = *cells[c];
    if (cell.empty() || !cell.deviation || cell.runs < 2) continue;
    const size_t own = trainings.empty() ? c : trainings[c];
    if (cell.flip_share.value_or(0) > 0) flips[own].Add(*cell.flip_share, cell);
    if (RunsAreEqual(cell)) {
      constant[own].Add(0, cell);
    } else {
      squares[own].Add(*cell.deviation * *cell.deviation, cell);
    }
  }
  PooledDeviation pool;
  if (!flips.empty()) pool.flip_share = PooledMean(flips);
  pool.freedom = FreedomOf(squares.empty() ? constant : squares);
  pool.deviation = squares.empty() ? 0 : std::sqrt(PooledMean(squares));
  return pool;
}

double FlipDeviation(double flip_share, const Cell& cell) {
  const auto items = static_cast<double>(cell.proportion->total);
  return 100 *
         std::sqrt(flip_share / (2 * items * static_cast<double>(cell.runs)));
}

Difference Compare(const Cell& ours, const Cell& golden,
                   const PooledDeviation& pool, double margin) {
  Difference difference;
  difference.point = ours.value - golden.value;
  const Interval rounding = RoundingInterval(ours, golden);
  const double excess = Excess(rounding, margin);
  const CellNoise seeds =
      SeedNoise(ours.runs, golden.runs, pool, excess, margin);
  const CellNoise items = ItemNoise(ours, golden, pool, excess, margin);
  const double below = std::max(seeds.below, items.below);
  const double above = std::max(seeds.above, items.above);
  difference.interval = {rounding.low - below, rounding.high + above};
  difference.half_width = std::max(below, above);
  // Both noises must rule the margin out; without items their p is 1.
  const bool counted = ours.proportion && golden.proportion;
  difference.p_outside =
      counted ? std::max(seeds.p_outside, items.p_outside) : seeds.p_outside;
  return difference;
}

bool RunsAreEqual(const Cell& ours) {
  // A mean over 1e5 steps and as many roundings has a relative error of 1e5 *
  // 2^-53 = 1.1e-11 at most; single-precision runs of different seeds are never
  // that close.
  constexpr double kRoundings = 1.2e-11;
  // Runs whose answers differ are not equal, even if as many are right.
  return ours.runs > 1 && ours.deviation &&
         !(ours.flip_share.value_or(0) > 0) &&
         *ours.deviation <= kRoundings * std::fabs(ours.value);
}

Status Equivalence(const Difference& difference, const PooledDeviation& noise,
                   double margin, bool by_construction) {
  const Interval& interval = difference.interval;
  // Runs that agree to the last bit were probably one run: an interval of width
  // zero is evidence for neither side.
  const bool suspicious =
      noise.all_equal() && difference.point != 0 && !by_construction;
  if (interval.low >= -margin && interval.high <= margin) {
    return suspicious ? Status::kMistrusted : Status::kPass;
  }
  if (difference.p_outside <= kLevel) {
    return suspicious ? Status::kMistrusted : Status::kFail;
  }
  return Status::kInconclusive;
}

std::optional<int64_t> RunsNeeded(const Cell& ours, const Cell& golden,
                                  const PooledDeviation& noise, double margin,
                                  double level) {
  if (!noise.known()) return 2;  // the fewest runs that show any noise
  Cell more = ours;
  // More runs narrow the interval monotonically.
  return LeastCount(ours.runs, [&](int64_t runs) {
    more.runs = runs;
    PooledDeviation pool = noise;
    pool.freedom += static_cast<double>(runs - ours.runs);
    const Difference difference = Compare(more, golden, pool, margin);
    return difference.p_outside <= level ||
           Equivalence(difference, pool, margin) == Status::kPass;
  });
}

}  // namespace softmoe::golden
