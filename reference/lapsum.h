// SPDX-License-Identifier: Apache-2.0
//
// lapsum.h - root, weights and derivatives of the LapSum equation (reference,
// double).
//
//   S(x) = sum_i F((r_i - x)/T) = k,   0 < k < n          paper, Sec. 3
//
// S falls strictly from n to 0, so the root x~ is unique; p_i = F((r_i - x~)/T)
// are the soft top-k weights, sum_i p_i = k. Closed form by SPEC.md 1.2, the
// root kept as anchor + T*offset; derivatives by SPEC.md 1.3. Derivations, and
// why this sorts although the paper claims O(n): NOTATION.md#lapsum.
#ifndef SOFTMOE_REFERENCE_LAPSUM_H_
#define SOFTMOE_REFERENCE_LAPSUM_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/laplace.h"
#include "reference/lapsum_root.h"
#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// The solution for one row of n scores.
template <typename N>
struct LapSumOf {
  N temperature = 1;      // T, as given
  N anchor = 0;           // one of the scores; +inf if k <= 0, -inf if k >= n
  N offset = 0;           // x~ = anchor + temperature*offset
  VectorOf<N> arguments;  // [n] u_i = (r_i - x~)/T; -inf where masked
  VectorOf<N> weights;    // [n] p_i = F(u_i), in [0, 1]; they sum to k
  VectorOf<N> densities;  // [n] f_i = f(u_i)
  VectorOf<N> shares;     // [n] q_i = f_i / sum f = softmax(-|u|)_i; sum to 1
  // sum f = e^-min_distance share_normalizer / 2, in two parts because it may
  // underflow.
  N min_distance = 0;      // min_i |u_i|
  N share_normalizer = 1;  // in [1, n]

  N root() const { return anchor + temperature * offset; }
};
using LapSum = LapSumOf<double>;

// Solves S(x) = mean_active and returns the weights.
//
//   scores       [n], n >= 1; -inf masks an expert out; a difference beyond the
//                largest double counts as an infinite one     (score units)
//   mean_active  k; below 0 counts as 0, above n as n    (experts per token)
//   temperature  T > 0, finite                                (score units)
// Errors  NumericsError for a score that is NaN or +inf (names the element) and
//         for a NaN mean_active; ConfigError for a bad temperature, no
//         finite score, or a mask with mean_active >= number of finite scores.
// Source  SPEC.md 1.2 (and its edge cases), DESIGN.md ruling 3.
LapSum SolveLapSum(const Vector& scores, double mean_active,
                   double temperature);

// A gradient with respect to the three inputs of SolveLapSum.
template <typename N>
struct LapSumGradientOf {
  VectorOf<N> d_scores;  // [n]; 0 where masked
  N d_mean_active = 0;
  N d_temperature = 0;
};
using LapSumGradient = LapSumGradientOf<double>;

// Returns J^T d_weights: the gradient of any loss whose gradient with respect
// to the weights is d_weights [n]. Where some r_i = x~ the weights are C^1, not
// C^2. For k <= 0 and k >= n, d_scores = d_temperature = 0, and d_mean_active =
// <softmax(r/T), d_weights>, with -r/T for k >= n: the right derivative by k at
// k = 0, the left one at k = n; beyond, the same by convention, although the
// weights do not move there. Errors: InternalError for a wrong size.
LapSumGradient LapSumVjp(const LapSum& solution, const Vector& d_weights);

// Returns J (scores_dot, mean_active_dot, temperature_dot): how the weights [n]
// move when the inputs move.
Vector LapSumJvp(const LapSum& solution, const Vector& scores_dot,
                 double mean_active_dot, double temperature_dot);

// Returns the gradient of the root x~ itself; d_mean_active is -inf where sum f
// underflows, d_temperature is infinite for k <= 0 and k >= n. At whole k, both
// halves of the gap below the k-th score, which is G T wide, enter
// d_temperature and cancel, leaving an error of some u G, u = 2^-53; root()
// errs by T times that, and by the rounding of its own size. Where G overflows,
// neither has a correct digit.
LapSumGradient LapSumRootGradient(const LapSum& solution);

// Weights and gradient over any scalar (scalar.h); the root itself is
// lapsum_root.h.
namespace formula {

// The root for finite scores in any order.
template <typename N>
LapSumRoot<N> SolveLapSumRoot(const VectorOf<N>& scores, const N& mean_active,
                              const N& temperature) {
  std::vector<N> sorted(scores.begin(), scores.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const N& a, const N& b) { return ValueOf(a) > ValueOf(b); });
  return reference::SolveLapSumRoot(sorted, mean_active, temperature);
}

// u_i = (r_i - x~)/T = (r_i - anchor)/T - offset
template <typename N>
VectorOf<N> LapSumArguments(const VectorOf<N>& scores,
                            const LapSumRoot<N>& root, const N& temperature) {
  VectorOf<N> arguments(scores.size());
  for (int64_t i = 0; i < scores.size(); ++i) {
    arguments[i] = (scores[i] - root.anchor) / temperature - root.offset;
  }
  return arguments;
}

// p_i = F(u_i)
template <typename N>
VectorOf<N> LapSumWeights(const VectorOf<N>& arguments) {
  VectorOf<N> weights(arguments.size());
  for (int64_t i = 0; i < arguments.size(); ++i) {
    weights[i] = LaplaceCdfOf(arguments[i]);
  }
  return weights;
}

// f_i = f(u_i)
template <typename N>
VectorOf<N> LapSumDensities(const VectorOf<N>& arguments) {
  VectorOf<N> densities(arguments.size());
  for (int64_t i = 0; i < arguments.size(); ++i) {
    densities[i] = LaplacePdfOf(arguments[i]);
  }
  return densities;
}

// ubar = sum_i q_i u_i. A share of 0 may meet an infinite argument.
template <typename N>
N MeanArgument(const LapSumOf<N>& solution) {
  CompensatedSum<N> sum;
  for (int64_t i = 0; i < solution.shares.size(); ++i) {
    if (ValueOf(solution.shares[i]) > 0) {
      sum.Add(solution.shares[i] * solution.arguments[i]);
    }
  }
  return sum.Get();
}

// f_i (u_i - ubar) = -T dp_i/dT; 0 where f_i is 0, whatever u_i is.
template <typename N>
N CenteredArgument(const LapSumOf<N>& solution, const N& mean_argument,
                   int64_t i) {
  if (ValueOf(solution.densities[i]) == 0) return N(0);
  return solution.densities[i] * (solution.arguments[i] - mean_argument);
}

// d_r_i = f_i (v_i - g)/T,  d_k = g = sum q v,  d_T = -sum f (u - ubar) v / T
template <typename N>
LapSumGradientOf<N> LapSumVjp(const LapSumOf<N>& solution,
                              const VectorOf<N>& d_weights) {
  const N mean_argument = MeanArgument(solution);
  CompensatedSum<N> mean, sum;
  for (int64_t i = 0; i < d_weights.size(); ++i) {
    mean.Add(solution.shares[i] * d_weights[i]);
    sum.Add(CenteredArgument(solution, mean_argument, i) * d_weights[i]);
  }
  LapSumGradientOf<N> gradient;
  gradient.d_mean_active = mean.Get();
  gradient.d_scores.resize(d_weights.size());
  for (int64_t i = 0; i < d_weights.size(); ++i) {
    gradient.d_scores[i] = solution.densities[i] *
                           (d_weights[i] - gradient.d_mean_active) /
                           solution.temperature;
  }
  gradient.d_temperature = -sum.Get() / solution.temperature;
  return gradient;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LAPSUM_H_
