// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

struct OneSided {
  double shown = 1, contradicted = 1;
};

// The p-values of one difference (FORMAT.md, "Claims in miniature").
OneSided TestDifference(const MiniatureMeasure& measure, double estimate,
                        double error, double freedom) {
  // The p-values of theta < margin and of theta > margin.
  const auto tails = [&](double margin) {
    return StudentTails((estimate - margin) / error, freedom);
  };
  const double margin = measure.margin;
  const auto [below, above] = tails(margin);
  switch (measure.holds) {
    case Holds::kBelow:
      return {below, above};
    case Holds::kAbove:
      return {above, below};
    case Holds::kWithin: {
      const auto [below_minus, above_minus] = tails(-margin);
      return {std::max(below, above_minus),
              std::min(1.0, 2 * std::min(above, below_minus))};
    }
  }
  return {};
}

// The evidence that at least `count` of the hypotheses are false (Benjamini and
// Heller, "Screening for partial conjunction hypotheses", 2008, with
// Bonferroni's bound), and the last hypothesis that it needs.
std::pair<double, size_t> PartialConjunction(const std::vector<double>& p,
                                             int64_t count) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p[a] < p[b]; });
  const size_t last = order[static_cast<size_t>(count) - 1];
  const auto others =
      static_cast<double>(p.size()) - static_cast<double>(count) + 1;
  return {std::min(1.0, others * p[last]), last};
}

}  // namespace

MeasureTest Combine(const std::vector<MiniatureCase>& cases, int64_t needed) {
  std::vector<double> shown, contradicted;
  for (const MiniatureCase& each : cases) {
    shown.push_back(each.p_shown);
    contradicted.push_back(each.p_contradicted);
  }
  const auto [p_shown, last_shown] = PartialConjunction(shown, needed);
  const auto [p_contradicted, last_contradicted] = PartialConjunction(
      contradicted, static_cast<int64_t>(cases.size()) - needed + 1);
  const bool to_shown = p_shown <= p_contradicted;
  // Two directions, each at half the level.
  return {std::min(1.0, 2 * std::min(p_shown, p_contradicted)), to_shown,
          to_shown ? last_shown : last_contradicted};
}

void TestCases(const MiniatureMeasure& measure, std::optional<int64_t> seeds,
               std::vector<MiniatureCase>* cases) {
  for (MiniatureCase& each : *cases) {
    if (!each.problem.empty()) continue;
    double error = each.seed_error, freedom = each.freedom;
    if (seeds) {
      const auto then = static_cast<double>(*seeds);
      const auto now = static_cast<double>(each.seeds);
      error *= std::sqrt(now / then);
      freedom *= (then - 1) / (now - 1);
      double variance = 0, squares = 0;
      for (const ErrorSource& source : each.sources) {
        const auto of_source = static_cast<double>(source.seeds);
        const double square = source.error * source.error * of_source / then;
        variance += square;
        squares +=
            square * square * (of_source - 1) / (source.freedom * (then - 1));
      }
      if (variance > 0) {
        error = std::sqrt(variance);
        freedom = variance * variance / squares;
      }
    }
    const OneSided p = TestDifference(
        measure, each.estimate, std::max(error, each.least_error), freedom);
    each.p_shown = p.shown;
    each.p_contradicted = p.contradicted;
  }
}

std::optional<int64_t> SeedsNeeded(const MiniatureMeasure& measure,
                                   std::vector<MiniatureCase> cases,
                                   int64_t needed, double level) {
  return LeastCount(1, [&](int64_t seeds) {
    TestCases(measure, seeds, &cases);
    return Combine(cases, needed).p <= level;
  });
}

bool PointsToClaim(const MiniatureMeasure& measure, double estimate) {
  switch (measure.holds) {
    case Holds::kBelow:
      return estimate < measure.margin;
    case Holds::kAbove:
      return estimate > measure.margin;
    case Holds::kWithin:
      return std::abs(estimate) < measure.margin;
  }
  return false;
}

double DetectableEffect(double error, double freedom, double level,
                        double power) {
  return (StudentQuantile(1 - level / 2, freedom) +
          StudentQuantile(power, freedom)) *
         error;
}

double DetectableDifference(double deviation, double freedom, int64_t seeds,
                            double level, double power) {
  return DetectableEffect(deviation * std::sqrt(2 / static_cast<double>(seeds)),
                          freedom, level, power);
}

}  // namespace softmoe::golden
