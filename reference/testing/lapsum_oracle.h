// SPDX-License-Identifier: Apache-2.0
//
// lapsum_oracle.h - the LapSum equation solved with 320 bits, by iteration on
// its definition (tests only).
//
//   S(x) - k = (m - k) + sum_{u_i <= 0} e^{u_i}/2 - sum_{u_i > 0} e^{-u_i}/2
//
// with u_i = (r_i - x)/T and m = #{u_i > 0}: the definition, with the ones of
// F collected so that nothing is lost where k = m and every exponential is tiny
// (a gap of 1e6 T leaves a residual of e^-500000). Nothing here is shared with
// lapsum.cc: no sorting, no segments, no closed form. The root is found by
// safeguarded Newton steps and then *enclosed*: S - k changes sign within
// 2^-kRootBits T of it, or the solver throws.
#ifndef SOFTMOE_REFERENCE_TESTING_LAPSUM_ORACLE_H_
#define SOFTMOE_REFERENCE_TESTING_LAPSUM_ORACLE_H_

#include <vector>

#include "reference/testing/mpfr_number.h"

namespace softmoe::reference::testing {

// The root is known to 2^-kRootBits T.
inline constexpr long kRootBits = 230;

struct LapSumProblem {
  std::vector<Mpfr> scores;  // finite
  double mean_active = 0;    // k, in (0, n)
  // Added to k, but kept apart: k + shift would need as many bits as the two
  // are apart.
  Mpfr mean_active_shift = 0.0;
  Mpfr temperature = 1.0;  // > 0
};

// A problem whose inputs are doubles.
LapSumProblem MakeProblem(const std::vector<double>& scores, double mean_active,
                          double temperature);

struct OracleSolution {
  Mpfr root = 0.0;
  std::vector<Mpfr> weights;    // F(u_i)
  std::vector<Mpfr> densities;  // e^-|u_i| / 2
  std::vector<bool> above;      // u_i > 0, so that F(u_i) = 1 - density
};

// Solves S(x) = k. `guess` is where the search starts; any number will do.
// Throws InternalError if the root cannot be enclosed.
OracleSolution SolveOracle(const LapSumProblem& problem, const Mpfr& guess);

// S(x) - k.
Mpfr ResidualOracle(const LapSumProblem& problem, const Mpfr& x);

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_LAPSUM_ORACLE_H_
