// SPDX-License-Identifier: Apache-2.0
#include "reference/lm_head.h"

#include <cmath>
#include <sstream>

#include "reference/embedding.h"
#include "reference/softmax.h"

namespace softmoe::reference {
namespace {

void CheckLogits(const Matrix& logits, std::span<const int32_t> targets) {
  SOFTMOE_CHECK(logits.rows() == static_cast<int64_t>(targets.size()))
      << logits.rows() << " tokens, " << targets.size() << " targets";
  CheckTokenIds(targets, logits.cols());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    for (int64_t v = 0; v < logits.cols(); ++v) {
      if (!std::isfinite(logits(t, v))) {
        std::ostringstream message;
        message << "the logit of token " << t << " for vocabulary entry " << v
                << " is " << logits(t, v)
                << "; look for a parameter that is not finite";
        throw NumericsError(message.str());
      }
    }
  }
}

}  // namespace

Matrix LmHeadLogits(const Matrix& hidden, const Matrix& head_weight) {
  return Multiply(hidden, head_weight.transpose());
}

Vector TokenLosses(const Matrix& logits, std::span<const int32_t> targets) {
  CheckLogits(logits, targets);
  Vector losses(logits.rows());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    losses(t) = LogSumExp(logits.row(t)) - logits(t, targets[t]);
  }
  return losses;
}

Matrix TokenLossesBackward(const Matrix& logits,
                           std::span<const int32_t> targets,
                           const Vector& d_token_losses) {
  CheckLogits(logits, targets);
  SOFTMOE_CHECK(d_token_losses.size() == logits.rows());
  Matrix d_logits(logits.rows(), logits.cols());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    d_logits.row(t) = Softmax(logits.row(t));
    d_logits(t, targets[t]) -= 1;
  }
  return d_token_losses.asDiagonal() * d_logits;
}

LmHeadGradients LmHeadBackward(const Matrix& hidden, const Matrix& head_weight,
                               std::span<const int32_t> targets,
                               const Vector& d_token_losses) {
  const Matrix d_logits = TokenLossesBackward(LmHeadLogits(hidden, head_weight),
                                              targets, d_token_losses);
  LmHeadGradients gradients;
  gradients.d_hidden = Multiply(d_logits, head_weight);
  gradients.d_head_weight = Multiply(d_logits.transpose(), hidden);
  return gradients;
}

}  // namespace softmoe::reference
