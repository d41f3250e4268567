// SPDX-License-Identifier: Apache-2.0
//
// error_bounds.h - how far a float kernel may be from the reference, element
// by element (verify/README.md). u = 2^-24.
//
// A bound is derived by running the reference's formula over numbers that carry
// their own error (BoundedNumber): every rounding adds u |x|; a sum of n terms
// in any order, by additions or fused multiply-adds, at most n u sum |x| (the
// dot-product bound); exp and log their documented 2 u. This file adds what the
// formulas cannot express: flushed weights, the condition of the LapSum
// equation, and a softmax computed in steps. Nothing is fitted.
//
// The value of such a number must equal the reference's to within a small part
// of its error; otherwise the bound was derived for another formula.
#ifndef SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "core/testing/bounded.h"
#include "reference/lapsum.h"
#include "reference/matrix.h"
#include "reference/scalar.h"

// What the reference's formulas require of a number (reference/scalar.h), for
// numbers that carry their error. Sums are bounded for any order, with or
// without compensation.
namespace softmoe {

// The score that a softmax subtracts cancels: each difference has the error of
// its own score alone, and is rounded by u times how far the computed largest
// score may be from x. (Another score that errs more may be the computed
// largest: u times its error, of second order, is within what exp is given.)
template <typename Rounding, Roundings kSums>
BoundedNumber<Rounding, kSums> Constant(
    const BoundedNumber<Rounding, kSums>& x) {
  return {x.value, Rounding::kRoundoff * x.error};
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
// The same numbers with random roundings in sums (see Roundings).
using RandomBounded = BoundedNumber<FloatRounding, Roundings::kRandom>;

// Additional error: if float flushes a weight, later operations take it for 0.
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
// The same for the logarithm of the sum.
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
// sum f is the slope of S, so a relative error of score j's exponential moves t
// by at most its share q_j = f_j / sum f of it. That exponential goes through
// at most n additions (at a breakpoint it may be among those of the other
// side), in whatever order, and, where sums are extended score by score (the
// recurrence), s_j products with an exponential, 3 u, one for each score from j
// to the root. The arguments of the exponentials add 3 u sum |z| e^z / (1 + sum
// e^z) <= 10 u for n <= 256; the closing root, quotient and, for k = j, half of
// ln(c/a) stay within the rest of 32 u. The logarithm, a gap of size 2 |t| + ln
// n and the difference cost 6 u |t|; z itself less than 4 u |z|. At a
// breakpoint the kernel may anchor at the neighbour, within ln n: with the gap,
// 8 u ln n.
inline std::vector<Bounded> LapSumArguments(const reference::LapSum& solution) {
  const reference::Vector& exact = solution.arguments;
  std::vector<int64_t> order(static_cast<size_t>(exact.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater<>(),
                    [&](int64_t i) { return exact[i]; });
  const double n = static_cast<double>(exact.size());
  const double above = static_cast<double>((exact.array() >= 0).count());
  double steps = 0;  // sum q_j s_j
  for (size_t rank = 0; rank < order.size(); ++rank) {
    steps += solution.shares[order[rank]] *
             (std::abs(static_cast<double>(rank) + 0.5 - above) + 0.5);
  }
  const double t = solution.offset;
  const double constant = n + 3 * steps + 32 + 8 * std::log(n);
  std::vector<Bounded> arguments;
  for (const double u : exact) {
    arguments.emplace_back(
        u, kFloatUnit * (constant + 4 * std::abs(u + t) + 6 * std::abs(t)));
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
