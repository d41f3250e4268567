// SPDX-License-Identifier: Apache-2.0
//
// error_bounds.h - how far a float kernel may be from the reference, element
// by element (verify/README.md). u = 2^-24.
//
// A bound is derived by running the reference's formula over numbers that carry
// their own error (BoundedNumber): every rounding adds u |x|, a sum of n terms
// in any order, by additions or fused multiply-adds, at most n u sum |x| (the
// dot-product bound), exp and log their documented 2 u. What the formulas
// cannot express is here: flushed weights, the condition of the LapSum
// equation, and a softmax computed in steps. Nothing is fitted.
//
// Such a number's value must equal the reference's to within a small part of
// its error; otherwise the bound was derived for another formula.
#ifndef SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/testing/bounded.h"
#include "reference/lapsum.h"
#include "reference/matrix.h"
#include "reference/scalar.h"

// What the formulas of the reference ask of a number (reference/scalar.h), of
// numbers that carry their error. Sums are bounded in whatever order they are
// taken, with compensation or without.
namespace softmoe {

// The score that a softmax subtracts cancels: only the error of the differences
// from it matters, not its own.
template <typename Rounding, Roundings kSums>
BoundedNumber<Rounding, kSums> Constant(
    const BoundedNumber<Rounding, kSums>& x) {
  return x;
}
template <typename Rounding, Roundings kSums>
bool PositiveForm(const BoundedNumber<Rounding, kSums>& z) {
  return z.value >= 0;
}

}  // namespace softmoe

namespace softmoe::reference {

template <typename Rounding, Roundings kSums>
class Sum<BoundedNumber<Rounding, kSums>>
    : public BoundedSum<BoundedNumber<Rounding, kSums>> {};
template <typename Rounding, Roundings kSums>
class CompensatedSum<BoundedNumber<Rounding, kSums>>
    : public BoundedSum<BoundedNumber<Rounding, kSums>> {};

}  // namespace softmoe::reference

namespace softmoe::property_tests {

using Bounded = BoundedNumber<FloatRounding>;
// The same numbers with random roundings in sums: Roundings.
using RandomBounded = BoundedNumber<FloatRounding, Roundings::kRandom>;

// Additional loss: if float flushes a weight, later operations take it for 0.
// Fewer than 64 such numbers, with factors of size 1, enter a result.
inline constexpr double kUnderflow = 64 * FloatRounding::kUnderflow;

// The most steps for `terms` taken at least 16 at a time, except for the last.
inline double StepsOf16(int64_t terms) {
  const int64_t whole_steps = terms / 16;
  return static_cast<double>(whole_steps) + 1;
}

// A softmax may be computed in at most `steps` steps, each of which rescales
// the exponentials and their sum so far by a factor with an error of at most 5
// u.
template <typename Number>
Number InSteps(const Number& weight, double steps) {
  const double rescaled = 5 * steps;  // (1 + a)/(1 - a) = 1 + 2 a/(1 - a)
  return weight.Rounded(2 * rescaled / (1 - rescaled * Number::kRoundoff));
}
// Likewise for the logarithm of the sum.
inline Bounded LogarithmInSteps(const Bounded& log_sum_exp, double steps) {
  return {log_sum_exp.value,
          log_sum_exp.error - std::log1p(-5 * steps * kFloatUnit)};
}
// A weight may be recomputed from its logarithm, e^(score - log_sum_exp).
inline Bounded Recomputed(const Bounded& weight, const Bounded& score,
                          const Bounded& log_sum_exp) {
  return {weight.value, std::max(weight.error, exp(score - log_sum_exp).error)};
}

// The arguments u_i = (r_i - root)/T of one row as the kernel may compute them:
// z_i - t, z_i = (r_i - anchor)/T, root = anchor + T t.
//
// Products and differences contribute 4 u (|z_i| + |t|). t is the logarithm of
// a quotient of positive sums of exponentials: E/4 additions in each of four
// chains, 6 roundings for each of the top = ceil(2k)+1 recurrence steps, 2.5 u
// for the argument of each exponential where sum |z| e^z / (1 + sum e^z) <= 6
// and the closing square root and logarithm: (E/4 + 6 top + 32) u. Since F has
// slope f <= 1/2 and S(x) = k, the relative error of those sums is that of
// f, which the division by sum f turns into an absolute one of t.
inline std::vector<Bounded> LapSumArguments(const reference::LapSum& solution,
                                            double mean_active) {
  const double n = static_cast<double>(solution.arguments.size());
  const double t = solution.offset;
  const double chain = n / 4 + 6 * (std::ceil(2 * mean_active) + 1) + 32;
  std::vector<Bounded> arguments;
  for (const double u : solution.arguments) {
    arguments.emplace_back(
        u, kFloatUnit * (chain + 4 * (std::abs(u + t) + std::abs(t))));
  }
  return arguments;
}

// Floats as a matrix for the reference.
inline reference::Matrix AsMatrix(std::span<const float> x, int64_t rows,
                                  int64_t columns) {
  reference::Matrix matrix(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) matrix.data()[i] = x[i];
  return matrix;
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_
