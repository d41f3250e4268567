// SPDX-License-Identifier: Apache-2.0
//
// lm_head.h - language-model head and token cross-entropy (reference, double).
//
//   logits = h W^T,   loss_t = logsumexp(logits_t) - logits_t[target_t] (nats)
//                                                              SPEC.md 3.2
#ifndef SOFTMOE_REFERENCE_LM_HEAD_H_
#define SOFTMOE_REFERENCE_LM_HEAD_H_

#include <cstdint>
#include <span>

#include "reference/matrix.h"
#include "reference/scalar.h"
#include "reference/softmax.h"

namespace softmoe::reference {

// hidden [num_tokens, d_model] (after the final norm), head_weight [vocab_size,
// d_model] -> logits [num_tokens, vocab_size].
Matrix LmHeadLogits(const Matrix& hidden, const Matrix& head_weight);

// Cross-entropy of each token, in nats [num_tokens]. Throws DataError for a
// target outside the vocabulary and NumericsError, naming token and vocabulary
// entry, for a logit that is not finite.
Vector TokenLosses(const Matrix& logits, std::span<const int32_t> targets);

// Returns the gradient with respect to the logits [num_tokens, vocab_size]:
// d_logits_t = d_loss_t (softmax(logits_t) - onehot(target_t)). Errors as
// TokenLosses.
Matrix TokenLossesBackward(const Matrix& logits,
                           std::span<const int32_t> targets,
                           const Vector& d_token_losses);

template <typename N>
struct LmHeadGradientsOf {
  MatrixOf<N> d_hidden;       // [num_tokens, d_model]
  MatrixOf<N> d_head_weight;  // [vocab_size, d_model]
};
using LmHeadGradients = LmHeadGradientsOf<double>;

// Gradient of sum_t d_token_losses_t * loss_t. Errors as TokenLosses.
LmHeadGradients LmHeadBackward(const Matrix& hidden, const Matrix& head_weight,
                               std::span<const int32_t> targets,
                               const Vector& d_token_losses);

// The formulas, over any scalar (scalar.h).
namespace formula {

// h W^T
template <typename N>
MatrixOf<N> LmHeadLogits(const MatrixOf<N>& hidden,
                         const MatrixOf<N>& head_weight) {
  return Multiply<N>(hidden, head_weight.transpose());
}

// logsumexp(logits_t) - logits_t[target_t]
template <typename N>
VectorOf<N> TokenLosses(const MatrixOf<N>& logits,
                        std::span<const int32_t> targets) {
  VectorOf<N> losses(logits.rows());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    losses[t] = LogSumExp<N>(logits.row(t)) - logits(t, targets[t]);
  }
  return losses;
}

// d_logits_t = d_loss_t (softmax(logits_t) - onehot(target_t))
template <typename N>
MatrixOf<N> TokenLossesBackward(const MatrixOf<N>& probabilities,
                                std::span<const int32_t> targets,
                                const VectorOf<N>& d_token_losses) {
  MatrixOf<N> d_logits = probabilities;
  for (int64_t t = 0; t < d_logits.rows(); ++t) {
    N& target = d_logits(t, targets[t]);
    target = target - 1;
    for (int64_t v = 0; v < d_logits.cols(); ++v) {
      d_logits(t, v) = d_token_losses[t] * d_logits(t, v);
    }
  }
  return d_logits;
}

// d_h = d_logits W,   d_W = d_logits^T h
template <typename N>
LmHeadGradientsOf<N> LmHeadBackward(const MatrixOf<N>& d_logits,
                                    const MatrixOf<N>& hidden,
                                    const MatrixOf<N>& head_weight) {
  return {Multiply<N>(d_logits, head_weight),
          Multiply<N>(d_logits.transpose(), hidden)};
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LM_HEAD_H_
