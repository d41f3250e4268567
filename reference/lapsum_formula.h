// SPDX-License-Identifier: Apache-2.0
//
// lapsum_formula.h - weights and gradient of lapsum.h over any scalar
// (scalar.h); the root itself is lapsum_root.h.
#ifndef SOFTMOE_REFERENCE_LAPSUM_FORMULA_H_
#define SOFTMOE_REFERENCE_LAPSUM_FORMULA_H_

#include <algorithm>
#include <vector>

#include "reference/laplace.h"
#include "reference/lapsum.h"
#include "reference/lapsum_root.h"
#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference::formula {

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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_LAPSUM_FORMULA_H_
