// SPDX-License-Identifier: Apache-2.0
//
// load_balance.h - the auxiliary losses of one layer over one balance group.
//
//   loss = coeff * E * sum_i f_i P_i          Switch, Megatron; SPEC.md 2.5
//     soft      f_i = n_i / sum_j n_j, n_i = tokens with expert i active
//               (1/E if none is);        P_i = mean_t p_ti / k_l
//     megatron  f_i = n_i / (top*N), n_i = tokens with expert i among the
//               `top` largest scores;    P_i = mean_t softmax(r_t)_i
//   z_loss = coeff * mean_t ln(sum_e e^{r_te})^2
//
// The gradient takes f and k_l as constants. Both readings are coeff at perfect
// balance, for every k <= E. Not linear in the batch: N is one balance group
// (DESIGN.md, ruling 6). Scores are those that were routed, noise included.
#ifndef SOFTMOE_REFERENCE_LOAD_BALANCE_H_
#define SOFTMOE_REFERENCE_LOAD_BALANCE_H_

#include <cstdint>

#include "reference/matrix.h"
#include "reference/scalar.h"
#include "reference/softmax.h"

namespace softmoe::reference {

struct LoadBalance {
  double loss = 0;       // added to nats; coefficient included
  Vector fractions;      // [experts] f_i, sum 1
  Vector probabilities;  // [experts] P_i, sum 1 (soft, k_l > E: E/k_l)
};

// Returns the loss of the `soft` reading.
//
//   coeff         >= 0
//   soft_weights  [tokens, experts]  p, before cutoff and cap; rows sum to
//                                    min(k_l, experts)
//   active        [tokens, experts]  the final active set, fallback included
//   mean_active   k_l > 0
// Errors  ConfigError for an empty group.
LoadBalance SoftLoadBalance(double coeff, double mean_active,
                            const Matrix& soft_weights,
                            const BoolMatrix& active);

// Returns d loss / d soft_weights [tokens, experts] = coeff*E*f_i / (N k_l);
// SoftWeightsBackward (router.h) takes it to the scores.
Matrix SoftLoadBalanceGradient(double coeff, double mean_active,
                               const LoadBalance& balance, int64_t num_tokens);

// Returns the loss of the `megatron` reading; also that of the sparse router.
//
//   scores  [tokens, experts], finite
//   top     BalanceTop, or the sparse router's k; in [1, experts]
// Errors  ConfigError for an empty group or `top` out of range; NumericsError
//         for a score that is not finite, as RouterForward.
LoadBalance MegatronLoadBalance(double coeff, int64_t top,
                                const Matrix& scores);

// Returns d loss / d scores [tokens, experts]
// = coeff*E/N s_ti (f_i - sum_j s_tj f_j), s_t = softmax(r_t).
Matrix MegatronLoadBalanceGradient(double coeff, const LoadBalance& balance,
                                   const Matrix& scores);

// Returns coeff * mean_t LogSumExp(scores_t)^2. Errors: ConfigError for an
// empty group.
double ZLoss(double coeff, const Matrix& scores);

// Returns d z_loss / d scores = coeff * 2/N LogSumExp(r_t) softmax(r_t).
Matrix ZLossGradient(double coeff, const Matrix& scores);

// Returns ceil(mean_active - 1e-6), in [1, num_experts]: how many experts the
// megatron reading counts per token for a soft router. The 1e-6 is the cap's
// (MaxActive): at K = 6 L and 105 layers, equal budget logits give every layer
// 6 + 2^-50, which is no reason to count a seventh expert.
int64_t BalanceTop(double mean_active, int64_t num_experts);

// The formulas, over any scalar (scalar.h). The fractions f_i are doubles: no
// gradient flows through them.
namespace formula {

// f_i = n_i / sum_j n_j of `counts` n [experts], or 1/E where nothing was
// counted.
inline Vector Fractions(const Vector& counts) {
  const double total = counts.sum();  // integers: exact
  if (total == 0) {
    return Vector::Constant(counts.size(), 1.0 / counts.size());
  }
  return counts / total;
}
// The fractions of a set [tokens, experts]: n_i tokens have expert i.
inline Vector Fractions(const BoolMatrix& counted) {
  const Vector counts = counted.cast<double>().colwise().sum().transpose();
  return Fractions(counts);
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
VectorOf<N> MegatronLoadBalanceGradient(double coeff, const Vector& fractions,
                                        const VectorOf<N>& softmax,
                                        int64_t num_tokens) {
  const double scale = coeff * static_cast<double>(softmax.size()) /
                       static_cast<double>(num_tokens);
  VectorOf<N> d_scores = SoftmaxVjp<N>(softmax, fractions.cast<N>());
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

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LOAD_BALANCE_H_
