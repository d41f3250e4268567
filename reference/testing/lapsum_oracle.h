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

#include <cstddef>
#include <optional>
#include <vector>

#include "reference/testing/mpfr_number.h"

namespace softmoe::reference::testing {

// The root is known to 2^-kRootBits T.
inline constexpr long kRootBits = 230;

struct OracleSolution {
  Mpfr root = 0.0;
  std::vector<Mpfr> weights;    // F(u_i)
  std::vector<Mpfr> densities;  // e^-|u_i| / 2
  std::vector<bool> above;      // u_i > 0, so that F(u_i) = 1 - density
};

// What k is: a double, and what is added to it but kept apart, since their sum
// would need as many bits as the two are apart.
struct OracleMeanActive {
  double value = 0;  // value + shift in (0, n)
  Mpfr shift = 0.0;
};

// The scores and the temperature of many equations, so that the exponentials of
// scores, which take most of the time, are computed once:
//
//   e^{(r_i - x)/T} = e^{(r_i - r_0)/T} e^{(r_0 - x)/T}
class LapSumOracle {
 public:
  // Scores: one or more, finite; temperature > 0.
  LapSumOracle(const std::vector<double>& scores, const Mpfr& temperature);

  // The same with r_i + change.
  LapSumOracle WithScoreChanged(size_t i, const Mpfr& change) const;

  // Solves S(x) = k. `guess` is where the search starts; any number will do.
  // Throws InternalError if the root cannot be enclosed.
  OracleSolution Solve(const OracleMeanActive& k, const Mpfr& guess) const;

  // S(x) - k.
  Mpfr Residual(const OracleMeanActive& k, const Mpfr& x) const;

 private:
  struct Parts;
  Parts Evaluate(const OracleMeanActive& k, const Mpfr& x) const;
  OracleSolution Solution(const Mpfr& x) const;
  void SetScore(size_t i, const Mpfr& score);
  // The next x of the search, if Newton's method has one.
  std::optional<Mpfr> NewtonStep(const Parts& parts, const Mpfr& x) const;

  std::vector<Mpfr> scores_;
  Mpfr origin_;  // r_0, whatever becomes of that score
  Mpfr temperature_;
  std::vector<Mpfr> up_;    // e^{(r_i - origin)/T} / 2
  std::vector<Mpfr> down_;  // e^{-(r_i - origin)/T} / 2
};

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_LAPSUM_ORACLE_H_
