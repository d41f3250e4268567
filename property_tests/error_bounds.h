// SPDX-License-Identifier: Apache-2.0
//
// error_bounds.h - how far a float kernel may be from the reference, element
// by element (verify/README.md). u = 2^-24.
//
// A bound is derived by running the operation's formula over numbers that carry
// their own error (kernels::Bounded): every rounding adds u |x|, a sum of n
// terms in any order, by additions or fused multiply-adds, at most n u sum |x|
// (the dot-product bound), exp and log their documented 2 u. What the formulas
// cannot say stands here: underflow, the condition of the LapSum equation, and
// the softmax that is computed in steps. Nothing is fitted.
//
// The value of such a number must be the reference's own to within a small part
// of its error: a bound for another formula is none.
#ifndef SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "golden/comparator.h"
#include "kernels/bounded.h"
#include "reference/lapsum.h"
#include "reference/matrix.h"

namespace softmoe::property_tests {

using kernels::Bounded;
using kernels::Exp;
using kernels::kUnit;
using kernels::Log;
using BoundedSum = kernels::Sum<Bounded>;

// exp flushes results below 1.7e-38 (vector_math.h), and products of such
// numbers lose at most as much each; a result is behind fewer than 64 of them
// with factors of size 1.
inline constexpr double kUnderflow = 64 * 0x1p-125;

inline Bounded Sqrt(Bounded x) {
  const double root = std::sqrt(x.value);
  return Bounded(root, x.error / root).Rounded();
}
inline Bounded Negate(Bounded x) { return {-x.value, x.error}; }

// 1 / (1 + e^-z), and SiLU(z) = z times it. Where e^-z overflows, it is 0.
template <typename N>
N Sigmoid(N z) {
  N s = N(1) / (N(1) + Exp(Negate(z)));
  if constexpr (std::is_same_v<N, Bounded>) s.error += kernels::kFlushed;
  return s;
}

// e^(score - largest) / sum e^(score - largest) of a row, and ln sum e^score,
// computed at once or in at most `steps` steps of which each rescales what it
// has by a factor with an error of at most 5 u.
template <typename N>
struct SoftmaxValues {
  std::vector<N> exponentials;  // relative to the largest score
  N sum;
  N log_sum_exp;
};
using BoundedSoftmax = SoftmaxValues<Bounded>;
template <typename N>
SoftmaxValues<N> SoftmaxOf(const std::vector<N>& scores, double steps) {
  size_t largest = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].value > scores[largest].value) largest = i;
  }
  SoftmaxValues<N> result;
  kernels::Sum<N> sum;
  for (const N& score : scores) {
    // Which score is taken for the largest cancels; that it is inexact does
    // not matter, only the difference is.
    result.exponentials.push_back(
        Exp(score - scores[largest]).Rounded(5 * steps));
    sum.Add(result.exponentials.back());
  }
  result.sum = sum.Get();
  result.log_sum_exp = scores[largest] + Log(result.sum);
  return result;
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
        u, kUnit * (chain + 4 * (std::abs(u + t) + std::abs(t))));
  }
  return arguments;
}

// F(u) and f(u) of an argument: |F'| = f, |f'| = f within the error.
inline Bounded LaplaceCdf(Bounded u) {
  const double f = 0.5 * std::exp(-std::abs(u.value));
  const double p = u.value <= 0 ? f : 1 - f;
  return {p, f * std::expm1(u.error) + 3 * kUnit * p};
}
inline Bounded LaplaceDensity(Bounded u) {
  const double f = 0.5 * std::exp(-std::abs(u.value));
  return {f, f * std::expm1(u.error) + 3 * kUnit * f};
}

// Why `got` is not `expected` within `bounds`; "" if it is. All of one size.
inline std::string Mismatch(const std::string& what, std::span<const float> got,
                            std::span<const double> expected,
                            std::span<const Bounded> bounds) {
  std::vector<double> limits;
  for (size_t i = 0; i < bounds.size(); ++i) {
    limits.push_back(bounds[i].error + kUnderflow);
    if (i >= expected.size()) continue;  // the comparator says so
    // Reference and bound sum the same n terms in double, in other orders:
    // 2^-29 of the float bound each. A NaN fails.
    const double drift = std::abs(bounds[i].value - expected[i]);
    if (!(drift <= 0x1p-26 * limits[i] + 0x1p-50 * std::abs(expected[i]))) {
      return what + "[" + std::to_string(i) +
             "]: the bound is for another formula: " +
             std::to_string(bounds[i].value) + " instead of " +
             std::to_string(expected[i]);
    }
  }
  const golden::Comparison comparison = golden::Compare(
      got, expected, limits, {.may_be_constant = true, .may_be_tiny = true});
  return comparison.ok() ? "" : what + ": " + comparison.Text();
}

inline std::string Mismatch(const std::string& what, std::span<const float> got,
                            const reference::Matrix& expected,
                            std::span<const Bounded> bounds) {
  return Mismatch(what, got,
                  std::span<const double>(expected.data(),
                                          static_cast<size_t>(expected.size())),
                  bounds);
}

// Floats as the reference takes them.
inline reference::Matrix AsMatrix(std::span<const float> x, int64_t rows,
                                  int64_t columns) {
  reference::Matrix matrix(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) matrix.data()[i] = x[i];
  return matrix;
}
inline reference::Vector AsVector(std::span<const float> x) {
  return AsMatrix(x, 1, static_cast<int64_t>(x.size())).row(0);
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_ERROR_BOUNDS_H_
