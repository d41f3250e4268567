// SPDX-License-Identifier: Apache-2.0
//
// load_balance.h - the auxiliary losses of one layer over one balance group.
//
//   loss = coeff * E * sum_i f_i P_i          Switch, Megatron; spec.md 2.5
//     soft      f_i = n_i / sum_j n_j, n_i = tokens with expert i active
//               (1/E if there is none);  P_i = mean_t p_ti / k_l
//     megatron  f_i = n_i / (top*N), n_i = tokens with i among the `top`
//     largest
//               scores;                  P_i = mean_t softmax(r_t)_i
//   z_loss = coeff * mean_t ln(sum_e e^{r_te})^2
//
// f and k_l are constants to the gradient. Both readings are coeff at perfect
// balance, whatever k. Not linear in the batch: N is one balance group
// (design.md, ruling 6).
#ifndef SOFTMOE_REFERENCE_LOAD_BALANCE_H_
#define SOFTMOE_REFERENCE_LOAD_BALANCE_H_

#include <cstdint>

#include "reference/matrix.h"

namespace softmoe::reference {

struct LoadBalance {
  double loss = 0;       // nats-like, coefficient included
  Vector fractions;      // [experts] f_i, sum 1
  Vector probabilities;  // [experts] P_i, sum 1
};

// Returns the loss of the `soft` reading.
//
//   soft_weights  [tokens, experts]  p, before cutoff and cap; rows sum to k
//   active        [tokens, experts]  the final active set
//   mean_active   k_l > 0
LoadBalance SoftLoadBalance(double coeff, double mean_active,
                            const Matrix& soft_weights,
                            const BoolMatrix& active);

// Returns d loss / d soft_weights [tokens, experts] = coeff*E*f_i / (N k_l);
// SoftWeightsBackward (router.h) takes it to the scores.
Matrix SoftLoadBalanceGradient(double coeff, double mean_active,
                               const LoadBalance& balance, int64_t num_tokens);

// Returns the loss of the `megatron` reading; also that of the sparse router.
//
//   scores  [tokens, experts]
//   top     ceil(k_l), or the sparse router's k; in [1, experts]
LoadBalance MegatronLoadBalance(double coeff, int64_t top,
                                const Matrix& scores);

// Returns d loss / d scores [tokens, experts]
// = coeff*E/N s_ti (f_i - sum_j s_tj f_j).
Matrix MegatronLoadBalanceGradient(double coeff, const LoadBalance& balance,
                                   const Matrix& scores);

// Returns coeff * mean_t LogSumExp(scores_t)^2.
double ZLoss(double coeff, const Matrix& scores);

// Returns d z_loss / d scores = coeff * 2/N LogSumExp(r_t) softmax(r_t).
Matrix ZLossGradient(double coeff, const Matrix& scores);

// ceil(mean_active): how many experts the megatron reading counts per token for
// a soft router. At most num_experts.
int64_t BalanceTop(double mean_active, int64_t num_experts);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LOAD_BALANCE_H_
