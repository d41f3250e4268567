// SPDX-License-Identifier: Apache-2.0
//
// How accurate the reference's LapSum is, against an independent solution with
// 320 bits (testing/lapsum_oracle.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
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

TEST(LapSumAccuracy, DerivativesAgreeWithHighPrecisionDifferences) {
  Worst by_score, by_temperature, by_k, root_by_k, root_by_score;
  int64_t cases = 0, at_kink = 0, differences = 0;
  for (int n : {1, 2, 3, 8, 32, 256}) {
    for (Shape shape : kShapes) {
      const std::vector<double> scores = MakeScores(shape, n);
      for (double temperature : {1e-3, 0.1, 1.0, 5.0, 1e3}) {
        const Mpfr step = Scale(Mpfr(temperature), kStepBits);  // of r and of T
        const LapSumOracle oracle(scores, temperature);
        const LapSumOracle warmer(scores, Mpfr(temperature) + step);
        const LapSumOracle colder(scores, Mpfr(temperature) - step);
        for (double k : {1e-9, 0.7, 1.0, 1.5, n / 2.0, n - 0.75, n - 1e-6}) {
          if (k >= n) continue;
          const LapSum solution = SolveLapSum(ToVector(scores), k, temperature);
          const OracleSolution exact_solution =
              oracle.Solve({k}, Guess(solution, temperature));
          const Mpfr& x = exact_solution.root;
          // Differences mean nothing within a step of a kink, r_i = x.
          bool kink = false;
          Mpfr sum_densities = 0.0;
          for (int i = 0; i < n; ++i) {
            const Mpfr distance = Abs(Mpfr(scores[i]) - x);
            kink = kink || distance < Scale(Mpfr(temperature), kStepBits + 4);
            sum_densities += exact_solution.densities[i];
          }
          if (kink) {
            ++at_kink;
            continue;
          }
          ++cases;
          const auto update = [&](Worst& worst, double error) {
            ++differences;
            worst.Update(error, n, shape, k, temperature);
          };
          Vector unit = Vector::Zero(n);

          // T dp_i/dr_j and dx/dr_j.
          const LapSumGradient root = LapSumRootGradient(solution);
          for (int j : Columns(solution.arguments)) {
            const Difference exact = CentralDifference(
                oracle.WithScoreChanged(j, step).Solve({k}, x),
                oracle.WithScoreChanged(j, -step).Solve({k}, x), step);
            unit.setZero();
            unit[j] = 1;
            const Vector jvp = LapSumJvp(solution, unit, 0, 0);
            const Vector vjp = LapSumVjp(solution, unit).d_scores;
            for (int i = 0; i < n; ++i) {
              const Mpfr scaled = Mpfr(temperature) * exact.weights[i];
              update(by_score, AbsoluteError(temperature * jvp[i], scaled));
              // The Jacobian is symmetric: row j is column j.
              update(by_score, AbsoluteError(temperature * vjp[i], scaled));
            }
            update(root_by_score, AbsoluteError(root.d_scores[j], exact.root));
          }

          // T dp_i/dT.
          {
            const Difference exact = CentralDifference(
                warmer.Solve({k}, x), colder.Solve({k}, x), step);
            unit.setZero();
            const Vector jvp = LapSumJvp(solution, unit, 0, 1);
            for (int i = 0; i < n; ++i) {
              unit.setZero();
              unit[i] = 1;
              const Mpfr scaled = Mpfr(temperature) * exact.weights[i];
              update(by_temperature,
                     AbsoluteError(temperature * jvp[i], scaled));
              update(by_temperature,
                     AbsoluteError(
                         temperature * LapSumVjp(solution, unit).d_temperature,
                         scaled));
            }
          }

          // dp_i/dk and dx/dk. Near an integer k the root moves by T while k
          // moves by sum f, so that is the scale of the step.
          {
            const Mpfr k_step = Scale(sum_densities, kStepBits);
            const Difference exact =
                CentralDifference(oracle.Solve({k, k_step}, x),
                                  oracle.Solve({k, -k_step}, x), k_step);
            unit.setZero();
            const Vector jvp = LapSumJvp(solution, unit, 1, 0);
            for (int i = 0; i < n; ++i) {
              unit.setZero();
              unit[i] = 1;
              update(by_k, AbsoluteError(jvp[i], exact.weights[i]));
              update(by_k,
                     AbsoluteError(LapSumVjp(solution, unit).d_mean_active,
                                   exact.weights[i]));
            }
            const double exact_root = exact.root.ToDouble();
            if (std::isinf(exact_root)) {
              EXPECT_EQ(root.d_mean_active, exact_root);
            } else {
              update(root_by_k, std::abs(root.d_mean_active / exact_root - 1));
            }
          }
        }
      }
    }
  }
  std::printf(
      "%lld cases, %lld partial derivatives; %lld cases lie on a kink\n",
      static_cast<long long>(cases), static_cast<long long>(differences),
      static_cast<long long>(at_kink));
  for (const auto& [name, worst] :
       {std::pair{"T dp/dr", &by_score}, std::pair{"T dp/dT", &by_temperature},
        std::pair{"dp/dk", &by_k}, std::pair{"dx/dr", &root_by_score},
        std::pair{"dx/dk relative", &root_by_k}}) {
    std::printf("worst %s: %.3g at %s\n", name, worst->error,
                worst->where.c_str());
    EXPECT_LE(worst->error, kDerivatives) << name << " at " << worst->where;
  }
  EXPECT_GE(cases, 1000);
}

}  // namespace
}  // namespace softmoe::reference
