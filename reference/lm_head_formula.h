// SPDX-License-Identifier: Apache-2.0
//
// lm_head_formula.h - lm_head.h over any scalar (scalar.h).
#ifndef SOFTMOE_REFERENCE_LM_HEAD_FORMULA_H_
#define SOFTMOE_REFERENCE_LM_HEAD_FORMULA_H_

#include <span>

#include "reference/lm_head.h"
#include "reference/matrix.h"
#include "reference/scalar.h"
#include "reference/softmax_formula.h"

namespace softmoe::reference::formula {

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

// softmax(logits_t)
template <typename N>
MatrixOf<N> TokenProbabilities(const MatrixOf<N>& logits) {
  MatrixOf<N> probabilities(logits.rows(), logits.cols());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    probabilities.row(t) = Softmax<N>(logits.row(t));
  }
  return probabilities;
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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_LM_HEAD_FORMULA_H_
