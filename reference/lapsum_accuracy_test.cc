// SPDX-License-Identifier: Apache-2.0
//
// How accurate the reference's LapSum is, against an independent solution with
// 320 bits (testing/lapsum_oracle.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/philox.h"
#include "reference/lapsum.h"
#include "reference/testing/lapsum_oracle.h"

namespace softmoe::reference {
namespace {

using testing::LapSumOracle;
using testing::Mpfr;
using testing::OracleSolution;

// Acceptance (DESIGN.md, ruling 4): weights within 2e-15; T dp/dr, T dp/dT and
// dp/dk within 1e-12 absolute, dx/dk relative.
constexpr double kWeights = 2e-15;
constexpr double kDerivatives = 1e-12;

constexpr int kSizes[] = {1, 2, 3, 8, 32, 64, 256};
constexpr double kTemperatures[] = {1e-3, 1e-2, 0.1, 1, 5, 1e2, 1e3};

enum class Shape {
  kNormal,
  kTies,  // normals rounded to multiples of 1/2
  kAllEqual,
  kScaled1e3,
  kScaled1em6,
  kEvenlySpaced,
  kOneDominant,
  kNearTies,  // pairs one ulp apart
};
constexpr Shape kShapes[] = {Shape::kNormal,      Shape::kTies,
                             Shape::kAllEqual,    Shape::kScaled1e3,
                             Shape::kScaled1em6,  Shape::kEvenlySpaced,
                             Shape::kOneDominant, Shape::kNearTies};

std::vector<double> MakeScores(Shape shape, int n) {
  std::vector<double> scores;
  for (int i = 0; i < n; ++i) {
    const RandomKey key{2026, RandomStream::kTestData,
                        static_cast<uint32_t>(shape), static_cast<uint32_t>(n)};
    const auto words = PhiloxWords(key, i);
    const double z = NormalsFromWords(words[0], words[1])[0];
    switch (shape) {
      case Shape::kNormal:
        scores.push_back(z);
        break;
      case Shape::kTies:
        scores.push_back(std::round(2 * z) / 2);
        break;
      case Shape::kAllEqual:
        scores.push_back(-1.7);
        break;
      case Shape::kScaled1e3:
        scores.push_back(1e3 * z);
        break;
      case Shape::kScaled1em6:
        scores.push_back(1e-6 * z);
        break;
      case Shape::kEvenlySpaced:
        scores.push_back(0.1 * ((7 * i) % n));
        break;
      case Shape::kOneDominant:
        scores.push_back(i == n / 2 ? 50 : 0.1 * z);
        break;
      case Shape::kNearTies:
        scores.push_back(i % 2 == 0 ? z
                                    : std::nextafter(scores.back(), HUGE_VAL));
        break;
    }
  }
  return scores;
}

// The values of k to try, all in (0, n).
std::vector<double> MeanActives(const std::vector<double>& scores,
                                const LapSumOracle& oracle) {
  const double n = static_cast<double>(scores.size());
  std::vector<double> result = {1e-9, 0.1,   0.5,   1,     1.5,     2,
                                2.75, n / 3, n / 2, n - 1, n - 0.5, n - 1e-6};
  // k beside a whole number j: the weights at a gap depend on k - j.
  for (const double whole : {1.0, std::floor(n / 2), n - 1}) {
    for (const double move : {1e-15, 1e-13, 1e-10, 1e-7}) {
      result.push_back(whole - move);
      result.push_back(whole + move);
    }
    double below = whole, above = whole;
    for (int ulp = 1; ulp <= 4; ++ulp) {
      below = std::nextafter(below, 0);
      above = std::nextafter(above, n);
      if (ulp == 1 || ulp == 4) {
        result.push_back(below);
        result.push_back(above);
      }
    }
  }
  // k at a node value, and 1, 2, 3 ulp to either side.
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  for (size_t node : {size_t{0}, sorted.size() / 2, sorted.size() - 1}) {
    // S at a score, rounded to double.
    const double value = oracle.Residual({0}, sorted[node]).ToDouble();
    double below = value, above = value;
    result.push_back(value);
    for (int ulp = 1; ulp <= 3; ++ulp) {
      below = std::nextafter(below, 0);
      above = std::nextafter(above, n);
      result.push_back(below);
      result.push_back(above);
    }
  }
  std::set<double> inside;
  for (double k : result) {
    if (k > 0 && k < n) inside.insert(k);
  }
  return {inside.begin(), inside.end()};
}

Vector ToVector(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), values.size());
}

// The search may start where the closed form ends: the oracle verifies its
// own result, wherever it started.
Mpfr Guess(const LapSum& solution, double temperature) {
  return Mpfr(solution.anchor) + Mpfr(temperature) * Mpfr(solution.offset);
}

struct Worst {
  double error = 0;
  std::string where = "nowhere";
  void Update(double e, int n, Shape shape, double k, double temperature) {
    if (e <= error || std::isnan(error)) return;  // a NaN e is kept
    error = e;
    char text[160];
    std::snprintf(text, sizeof text, "n=%d shape=%d k=%.17g T=%g", n,
                  static_cast<int>(shape), k, temperature);
    where = text;
  }
};

TEST(LapSumAccuracy, WeightsAgreeWithTheHighPrecisionSolution) {
  Worst worst;
  int64_t cases = 0, weights = 0;
  for (int n : kSizes) {
    for (Shape shape : kShapes) {
      const std::vector<double> scores = MakeScores(shape, n);
      for (double temperature : kTemperatures) {
        const LapSumOracle oracle(scores, temperature);
        for (double k : MeanActives(scores, oracle)) {
          const LapSum got = SolveLapSum(ToVector(scores), k, temperature);
          const std::vector<Mpfr> expected =
              oracle.Solve({k}, Guess(got, temperature)).weights;
          for (int i = 0; i < n; ++i) {
            const double error =
                Abs(Mpfr(got.weights[i]) - expected[i]).ToDouble();
            worst.Update(error, n, shape, k, temperature);
          }
          ++cases;
          weights += n;
        }
      }
    }
  }
  std::printf("%lld cases, %lld weights; worst |p - exact| = %.3g at %s\n",
              static_cast<long long>(cases), static_cast<long long>(weights),
              worst.error, worst.where.c_str());
  EXPECT_LE(worst.error, kWeights) << worst.where;
  EXPECT_GE(cases, 10000);
}

// All partial derivatives by central differences of the oracle. A step of
// 2^-80 T leaves a truncation error of 2^-160 and, as roots err by 2^-230 T, a
// rounding error of 2^-149: 44 digits more than the double has.
constexpr long kStepBits = -80;

struct Difference {
  std::vector<Mpfr> weights;  // [n]
  Mpfr root = 0.0;
};

// Of two problems that are two steps apart.
Difference CentralDifference(const OracleSolution& upper,
                             const OracleSolution& lower, const Mpfr& step) {
  const Mpfr width = Scale(step, 1);
  Difference difference;
  difference.root = (upper.root - lower.root) / width;
  for (size_t i = 0; i < upper.weights.size(); ++i) {
    // The difference of p or of 1 - p, whichever is small: 320 bits do not hold
    // p = 1 - e^-1000. Kinks are left out: no score lies between the roots.
    const Mpfr change = (upper.densities[i] - lower.densities[i]) / width;
    difference.weights.push_back(upper.above[i] ? -change : change);
  }
  return difference;
}

double AbsoluteError(double got, const Mpfr& expected) {
  return Abs(Mpfr(got) - expected).ToDouble();
}

// The scores to differentiate by: all if they are few, else the ends, the one
// nearest the root and two more.
std::set<int> Columns(const Vector& arguments) {
  const int n = static_cast<int>(arguments.size());
  std::set<int> columns;
  if (n <= 3) {
    for (int j = 0; j < n; ++j) columns.insert(j);
    return columns;
  }
  Eigen::Index index = 0;
  arguments.maxCoeff(&index);
  columns.insert(static_cast<int>(index));
  arguments.cwiseAbs().minCoeff(&index);
  columns.insert(static_cast<int>(index));
  columns.insert(n / 3);
  return columns;
}

// One problem, solved by the reference and, with the problems a step away, by
// the oracle.
struct DifferencedCase {
  int n;
  Shape shape;
  double k, temperature;
  const LapSum& solution;
  const OracleSolution& exact;
  const LapSumOracle &oracle, &warmer, &colder;  // of T, T + step, T - step
  const Mpfr& step;                              // of r and of T
};

// Differences mean nothing within a step of a kink, r_i = x.
bool IsAtKink(const std::vector<double>& scores, const Mpfr& root,
              double temperature) {
  for (const double score : scores) {
    if (Abs(Mpfr(score) - root) < Scale(Mpfr(temperature), kStepBits + 4)) {
      return true;
    }
  }
  return false;
}

// The largest errors of the derivatives, over all cases that are added.
class DerivativeErrors {
 public:
  void Add(const DifferencedCase& c) {
    ++cases_;
    AddByScore(c);
    AddByTemperature(c);
    AddByK(c);
  }

  int64_t cases() const { return cases_; }
  int64_t differences() const { return differences_; }

  void ExpectSmall() const {
    for (const auto& [name, worst] :
         {std::pair{"T dp/dr", &by_score_},
          std::pair{"T dp/dT", &by_temperature_}, std::pair{"dp/dk", &by_k_},
          std::pair{"dx/dr", &root_by_score_},
          std::pair{"dx/dk relative", &root_by_k_}}) {
      std::printf("worst %s: %.3g at %s\n", name, worst->error,
                  worst->where.c_str());
      EXPECT_LE(worst->error, kDerivatives) << name << " at " << worst->where;
    }
  }

 private:
  void Update(Worst& worst, const DifferencedCase& c, double error) {
    ++differences_;
    worst.Update(error, c.n, c.shape, c.k, c.temperature);
  }

  // T dp_i/dr_j and dx/dr_j.
  void AddByScore(const DifferencedCase& c) {
    const Vector d_root = LapSumRootGradient(c.solution).d_scores;
    for (const int j : Columns(c.solution.arguments)) {
      const Difference exact = CentralDifference(
          c.oracle.WithScoreChanged(j, c.step).Solve({c.k}, c.exact.root),
          c.oracle.WithScoreChanged(j, -c.step).Solve({c.k}, c.exact.root),
          c.step);
      const Vector unit = Vector::Unit(c.n, j);
      const Vector jvp = LapSumJvp(c.solution, unit, 0, 0);
      const Vector vjp = LapSumVjp(c.solution, unit).d_scores;
      for (int i = 0; i < c.n; ++i) {
        const Mpfr scaled = Mpfr(c.temperature) * exact.weights[i];
        Update(by_score_, c, AbsoluteError(c.temperature * jvp[i], scaled));
        // The Jacobian is symmetric: row j is column j.
        Update(by_score_, c, AbsoluteError(c.temperature * vjp[i], scaled));
      }
      Update(root_by_score_, c, AbsoluteError(d_root[j], exact.root));
    }
  }

  // T dp_i/dT.
  void AddByTemperature(const DifferencedCase& c) {
    const Difference exact =
        CentralDifference(c.warmer.Solve({c.k}, c.exact.root),
                          c.colder.Solve({c.k}, c.exact.root), c.step);
    const Vector jvp = LapSumJvp(c.solution, Vector::Zero(c.n), 0, 1);
    for (int i = 0; i < c.n; ++i) {
      const double vjp =
          LapSumVjp(c.solution, Vector::Unit(c.n, i)).d_temperature;
      const Mpfr scaled = Mpfr(c.temperature) * exact.weights[i];
      Update(by_temperature_, c, AbsoluteError(c.temperature * jvp[i], scaled));
      Update(by_temperature_, c, AbsoluteError(c.temperature * vjp, scaled));
    }
  }

  // dp_i/dk and dx/dk. Near an integer k the root moves by T while k moves by
  // sum f, so that is the scale of the step.
  void AddByK(const DifferencedCase& c) {
    Mpfr sum_densities = 0.0;
    for (const Mpfr& density : c.exact.densities) sum_densities += density;
    const Mpfr k_step = Scale(sum_densities, kStepBits);
    const Difference exact =
        CentralDifference(c.oracle.Solve({c.k, k_step}, c.exact.root),
                          c.oracle.Solve({c.k, -k_step}, c.exact.root), k_step);
    const Vector jvp = LapSumJvp(c.solution, Vector::Zero(c.n), 1, 0);
    for (int i = 0; i < c.n; ++i) {
      const double vjp =
          LapSumVjp(c.solution, Vector::Unit(c.n, i)).d_mean_active;
      Update(by_k_, c, AbsoluteError(jvp[i], exact.weights[i]));
      Update(by_k_, c, AbsoluteError(vjp, exact.weights[i]));
    }
    const double root = LapSumRootGradient(c.solution).d_mean_active;
    const double exact_root = exact.root.ToDouble();
    if (std::isinf(exact_root)) {
      EXPECT_EQ(root, exact_root);
    } else {
      Update(root_by_k_, c, std::abs(root / exact_root - 1));
    }
  }

  Worst by_score_, by_temperature_, by_k_, root_by_k_, root_by_score_;
  int64_t cases_ = 0, differences_ = 0;
};

TEST(LapSumAccuracy, DerivativesAgreeWithHighPrecisionDifferences) {
  DerivativeErrors errors;
  int64_t at_kink = 0;
  for (int n : {1, 2, 3, 8, 32, 256}) {
    for (Shape shape : kShapes) {
      const std::vector<double> scores = MakeScores(shape, n);
      for (double temperature : {1e-3, 0.1, 1.0, 5.0, 1e3}) {
        const Mpfr step = Scale(Mpfr(temperature), kStepBits);
        const LapSumOracle oracle(scores, temperature);
        const LapSumOracle warmer(scores, Mpfr(temperature) + step);
        const LapSumOracle colder(scores, Mpfr(temperature) - step);
        for (double k : {1e-9, 0.7, 1.0, 1.5, n / 2.0, n - 0.75, n - 1e-6}) {
          if (k >= n) continue;
          const LapSum solution = SolveLapSum(ToVector(scores), k, temperature);
          const OracleSolution exact =
              oracle.Solve({k}, Guess(solution, temperature));
          if (IsAtKink(scores, exact.root, temperature)) {
            ++at_kink;
            continue;
          }
          errors.Add({n, shape, k, temperature, solution, exact, oracle, warmer,
                      colder, step});
        }
      }
    }
  }
  std::printf(
      "%lld cases, %lld partial derivatives; %lld cases lie on a kink\n",
      static_cast<long long>(errors.cases()),
      static_cast<long long>(errors.differences()),
      static_cast<long long>(at_kink));
  errors.ExpectSmall();
  EXPECT_GE(errors.cases(), 1000);
}

}  // namespace
}  // namespace softmoe::reference
