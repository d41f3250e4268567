// SPDX-License-Identifier: Apache-2.0
#include "property_tests/testing/generators.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <limits>
#include <ostream>
#include <string>

namespace softmoe::property_tests {
namespace {

double MoveByUlps(double value, int64_t ulps) {
  for (; ulps > 0; --ulps) value = std::nextafter(value, HUGE_VAL);
  for (; ulps < 0; ++ulps) value = std::nextafter(value, -HUGE_VAL);
  return value;
}

// S(x) by its definition in plain double, which is good enough as a target.
double SumOfCdfs(const std::vector<double>& scores, double x,
                 double temperature) {
  double sum = 0;
  for (double score : scores) {
    const double u = (score - x) / temperature;
    sum += u <= 0 ? 0.5 * std::exp(u) : 1 - 0.5 * std::exp(-u);
  }
  return sum;
}

// Between the j-th largest score and the next; j in [1, n) if n > 1.
struct Gap {
  int64_t j = 1;
  double width = 0;
};

Gap WidestGap(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end(), std::greater<double>());
  Gap widest;
  for (size_t j = 1; j < scores.size(); ++j) {
    const double width = scores[j - 1] - scores[j];
    if (width > widest.width) widest = {static_cast<int64_t>(j), width};
  }
  return widest;
}

// For k beside an integer, T is mostly low enough for the scores to have a gap.
double GenerateTemperature(KClass k_class, const std::vector<double>& scores) {
  const double width = WidestGap(scores).width;
  if (k_class == KClass::kBesideInteger && width > 0 && *Uniform(0, 4) > 0) {
    const double gap = *rc::gen::element(30.0, 80.0, 200.0, 2000.0);
    return std::clamp(width / gap, 1e-3, 1e3);
  }
  return *rc::gen::element(1.0, 5.0, 0.1, 0.3, 1e-2, 1e-3, 30.0, 1e3);
}

// Returns a number near j, but never j itself: where the gap below the j-th
// score is wide, the weights at the gap depend on k - j, however small it is.
double MoveBesideInteger(int64_t j) {
  const double integer = static_cast<double>(j);
  const double side = *rc::gen::element(-1.0, 1.0);
  const double move =
      *rc::gen::element(0.0, 0.0, 0.0, 1e-15, 1e-13, 1e-10, 1e-7);
  const double moved = integer + side * move;
  if (moved != integer) return moved;
  return MoveByUlps(integer, static_cast<int64_t>(side) * *Uniform(1, 5));
}

double GenerateK(KClass k_class, const std::vector<double>& scores,
                 double temperature) {
  const int64_t n = static_cast<int64_t>(scores.size());
  const double size = static_cast<double>(n);
  double k = 0.5 * size;
  switch (k_class) {
    case KClass::kAnywhere:
      k = size * static_cast<double>(*Uniform(1, 1 << 20)) * 0x1p-20;
      break;
    case KClass::kInteger:
      k = n > 1 ? static_cast<double>(*Uniform(1, n)) : 0.5;
      break;
    case KClass::kBesideInteger:
      if (n > 1) {
        k = MoveBesideInteger(*Uniform(0, 8) > 0 ? WidestGap(scores).j
                                                 : *Uniform(1, n));
      }
      break;
    case KClass::kHalfInteger:
      k = static_cast<double>(*Uniform(0, n)) + 0.5;
      break;
    case KClass::kNearZero:
      k = *rc::gen::element(1e-12, 1e-9, 1e-6, 1e-3);
      break;
    case KClass::kNearN:
      k = size - *rc::gen::element(1e-12, 1e-9, 1e-6, 1e-3);
      break;
    case KClass::kAtNode:
      k = MoveByUlps(SumOfCdfs(scores, scores[*Uniform(0, n)], temperature),
                     *Uniform(-3, 4));
      break;
  }
  return k > 0 && k < size ? k : 0.5 * size;
}

}  // namespace

const char* ScoreClassName(ScoreClass score_class) {
  switch (score_class) {
    case ScoreClass::kPlain:
      return "plain";
    case ScoreClass::kTies:
      return "ties";
    case ScoreClass::kNearTies:
      return "near-ties";
    case ScoreClass::kPlateaus:
      return "plateaus";
    case ScoreClass::kAllEqual:
      return "all equal";
    case ScoreClass::kOneDominant:
      return "one dominant";
  }
  return "?";
}

const char* KClassName(KClass k_class) {
  switch (k_class) {
    case KClass::kAnywhere:
      return "k anywhere";
    case KClass::kInteger:
      return "k integer";
    case KClass::kBesideInteger:
      return "k beside an integer";
    case KClass::kHalfInteger:
      return "k half-integer";
    case KClass::kNearZero:
      return "k near 0";
    case KClass::kNearN:
      return "k near n";
    case KClass::kAtNode:
      return "k at a node";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& os, const LapSumCase& lapsum_case) {
  os << std::setprecision(17) << "k=" << lapsum_case.mean_active
     << " T=" << lapsum_case.temperature << " n=" << lapsum_case.n() << " ("
     << ScoreClassName(lapsum_case.score_class) << ", "
     << KClassName(lapsum_case.k_class) << ") scores={";
  for (double score : lapsum_case.scores) os << score << ", ";
  return os << "}";
}

rc::Gen<int64_t> Uniform(int64_t min, int64_t max) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(min, max));
}

rc::Gen<double> UnitDouble() {
  return rc::gen::map(Uniform(-(1 << 20), 1 << 20), [](int64_t i) {
    return static_cast<double>(i) * 0x1p-20;
  });
}

rc::Gen<std::vector<double>> Scores(int n, ScoreClass score_class,
                                    double scale) {
  return rc::gen::exec([=] {
    std::vector<double> scores;
    for (int i = 0; i < n; ++i) {
      double score = scale * *UnitDouble();
      switch (score_class) {
        case ScoreClass::kTies:
          if (i > 0 && *Uniform(0, 2) == 0) score = scores[*Uniform(0, i)];
          break;
        case ScoreClass::kNearTies:
          if (i > 0 && *Uniform(0, 2) == 0) {
            score = MoveByUlps(scores[*Uniform(0, i)], *Uniform(-3, 4));
          }
          break;
        case ScoreClass::kPlateaus:
          score = scale * static_cast<double>(*Uniform(-1, 2));
          break;
        case ScoreClass::kAllEqual:
          if (i > 0) score = scores[0];
          break;
        case ScoreClass::kOneDominant:
          score = i == n / 2 ? scale : score * 0x1p-6;
          break;
        case ScoreClass::kPlain:
          break;
      }
      scores.push_back(score);
    }
    return scores;
  });
}

rc::Gen<LapSumCase> LapSumCases(int max_n) {
  return rc::gen::exec([=] {
    LapSumCase result;
    const int64_t wanted = *rc::gen::weightedOneOf<int64_t>(
        {{8, Uniform(1, 9)},
         {6, Uniform(9, 41)},
         {1, rc::gen::element<int64_t>(64, 128, 256)}});
    const int n = static_cast<int>(std::min<int64_t>(wanted, max_n));
    result.score_class = *rc::gen::element(
        ScoreClass::kPlain, ScoreClass::kPlain, ScoreClass::kTies,
        ScoreClass::kNearTies, ScoreClass::kPlateaus, ScoreClass::kAllEqual,
        ScoreClass::kOneDominant);
    // Powers of two near 1e-6 .. 1e3, so that the scores lie on a grid.
    const double scale = *rc::gen::element(1.0, 4.0, 0x1p-7, 0x1p-20, 0x1p10);
    result.scores = *Scores(n, result.score_class, scale);
    if (result.score_class != ScoreClass::kNearTies) {
      result.grid = scale * 0x1p-26;
    }
    result.k_class = *rc::gen::element(
        KClass::kAnywhere, KClass::kAnywhere, KClass::kInteger,
        KClass::kBesideInteger, KClass::kBesideInteger, KClass::kBesideInteger,
        KClass::kHalfInteger, KClass::kNearZero, KClass::kNearN,
        KClass::kAtNode);
    result.temperature = GenerateTemperature(result.k_class, result.scores);
    result.mean_active =
        GenerateK(result.k_class, result.scores, result.temperature);
    return result;
  });
}

rc::Gen<std::vector<double>> Directions(int n) {
  return rc::gen::container<std::vector<double>>(n, UnitDouble());
}

void Classify(const LapSumCase& lapsum_case) {
  RC_TAG(std::string(ScoreClassName(lapsum_case.score_class)));
  RC_CLASSIFY(lapsum_case.n() == 1, "n = 1");
  RC_CLASSIFY(lapsum_case.n() > 40, "n > 40");
  RC_CLASSIFY(true, KClassName(lapsum_case.k_class));
}

}  // namespace softmoe::property_tests
