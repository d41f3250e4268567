// SPDX-License-Identifier: Apache-2.0
//
// load_balance_formula.h - load_balance.h over any scalar (scalar.h). The
// fractions f_i are doubles: no gradient flows through them.
#ifndef SOFTMOE_REFERENCE_LOAD_BALANCE_FORMULA_H_
#define SOFTMOE_REFERENCE_LOAD_BALANCE_FORMULA_H_

#include "reference/matrix.h"
#include "reference/scalar.h"
#include "reference/softmax_formula.h"

namespace softmoe::reference::formula {

// softmax(r_t) of each token.
template <typename N>
MatrixOf<N> SoftmaxRows(const MatrixOf<N>& scores) {
  MatrixOf<N> rows(scores.rows(), scores.cols());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    rows.row(t) = Softmax<N>(scores.row(t));
  }
  return rows;
}

// P_i = mean_t p_ti / k_l
template <typename N>
VectorOf<N> SoftProbabilities(const MatrixOf<N>& soft_weights,
                              const N& mean_active) {
  const double num_tokens = static_cast<double>(soft_weights.rows());
  VectorOf<N> probabilities = ColumnSums<N>(soft_weights);
  for (N& p : probabilities) p = p / num_tokens / mean_active;
  return probabilities;
}

// P_i = mean_t softmax(r_t)_i
template <typename N>
VectorOf<N> MegatronProbabilities(const MatrixOf<N>& softmax) {
  const double num_tokens = static_cast<double>(softmax.rows());
  VectorOf<N> probabilities = ColumnSums<N>(softmax);
  for (N& p : probabilities) p = p / num_tokens;
  return probabilities;
}

// coeff * E * sum_i f_i P_i
template <typename N>
N BalanceLoss(double coeff, const Vector& fractions,
              const VectorOf<N>& probabilities) {
  const double num_experts = static_cast<double>(fractions.size());
  return coeff * num_experts * Dot<N>(fractions, probabilities);
}

// d soft loss / d p_ti = coeff*E*f_i / (N k_l), the same for every token.
template <typename N>
VectorOf<N> SoftLoadBalanceGradient(double coeff, const N& mean_active,
                                    const Vector& fractions,
                                    int64_t num_tokens) {
  const double scale = coeff * static_cast<double>(fractions.size());
  const N divisor = static_cast<double>(num_tokens) * mean_active;
  VectorOf<N> per_token(fractions.size());
  for (int64_t i = 0; i < fractions.size(); ++i) {
    per_token[i] = scale * fractions[i] / divisor;
  }
  return per_token;
}

// d megatron loss / d r_t = coeff*E/N s_i (f_i - sum_j s_j f_j)
template <typename N>
VectorOf<N> MegatronLoadBalanceGradient(double coeff,
                                        const VectorOf<N>& fractions,
                                        const VectorOf<N>& softmax,
                                        int64_t num_tokens) {
  const double scale = coeff * static_cast<double>(softmax.size()) /
                       static_cast<double>(num_tokens);
  VectorOf<N> d_scores = SoftmaxVjp<N>(softmax, fractions);
  for (N& element : d_scores) element = scale * element;
  return d_scores;
}

// sum_t ln(sum_e e^{r_te})^2
template <typename N>
N SumOfSquaredLogSumExps(const MatrixOf<N>& scores) {
  Sum<N> sum;
  for (int64_t t = 0; t < scores.rows(); ++t) {
    const N log_sum_exp = LogSumExp<N>(scores.row(t));
    sum.Add(log_sum_exp * log_sum_exp);
  }
  return sum.Get();
}

// coeff * mean_t ln(sum_e e^{r_te})^2
template <typename N>
N ZLoss(double coeff, const MatrixOf<N>& scores) {
  return coeff * SumOfSquaredLogSumExps<N>(scores) /
         static_cast<double>(scores.rows());
}

// d (factor/2 LogSumExp(r)^2) / d r = factor LogSumExp(r) softmax(r)
template <typename N>
VectorOf<N> SquaredLogSumExpGradient(const N& factor, const N& log_sum_exp,
                                     const VectorOf<N>& softmax) {
  VectorOf<N> d_scores = softmax;
  for (N& element : d_scores) element = factor * log_sum_exp * element;
  return d_scores;
}

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_LOAD_BALANCE_FORMULA_H_
