// SPDX-License-Identifier: Apache-2.0
//
// generators.h - RapidCheck generators of score rows and LapSum problems.
//
// Random scores are the easy case. The generators plant what breaks routing
// code: exact ties, ties up to a few ulp, plateaus, one dominant score, scores
// of size 1e-6 and 1e3, temperatures from 1e-3 to 1e3, and k at integers,
// beside them, at the ends and within 3 ulp of node values S(r_i).
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_GENERATORS_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_GENERATORS_H_

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

namespace softmoe::property_tests {

enum class ScoreClass {
  kPlain,
  kTies,
  kNearTies,
  kPlateaus,
  kAllEqual,
  kOneDominant,
};
const char* ScoreClassName(ScoreClass score_class);

enum class KClass {
  kAnywhere,
  kInteger,
  kBesideInteger,  // off by 1 to 4 ulp, or by 1e-15 to 1e-7
  kHalfInteger,
  kNearZero,
  kNearN,
  kAtNode,  // S(r_i) +- 0..3 ulp
};
const char* KClassName(KClass k_class);

struct LapSumCase {
  std::vector<double> scores;  // 1 to 256 of them, finite
  double mean_active = 0.5;    // k, in (0, n)
  double temperature = 1;      // in [1e-3, 1e3]
  ScoreClass score_class = ScoreClass::kPlain;
  KClass k_class = KClass::kAnywhere;

  int n() const { return static_cast<int>(scores.size()); }
  // A power of two of which every score is a multiple, by at most 2^26, so that
  // adding other multiples is exact; 0 for near-ties, which have no such grid.
  double grid = 0;
};
std::ostream& operator<<(std::ostream& os, const LapSumCase& lapsum_case);

// Uniform in [min, max) at every RapidCheck size, whereas inRange's range grows
// with the size.
rc::Gen<int64_t> Uniform(int64_t min, int64_t max);

// A multiple of 2^-20 in [-1, 1), shrinking towards -1.
rc::Gen<double> UnitDouble();

// `n` scores of one class and scale.
rc::Gen<std::vector<double>> Scores(int n, ScoreClass score_class,
                                    double scale);

// Problems of all classes with n <= max_n.
rc::Gen<LapSumCase> LapSumCases(int max_n = 256);

// `n` numbers in [-1, 1), for cotangents and directions.
rc::Gen<std::vector<double>> Directions(int n);

// Reports a case's class to RapidCheck, for the distribution that it prints.
void Classify(const LapSumCase& lapsum_case);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_GENERATORS_H_
