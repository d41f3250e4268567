// SPDX-License-Identifier: Apache-2.0
#include "reference/lm_head.h"

#include <cmath>
#include <sstream>

#include "core/errors.h"
#include "reference/embedding.h"

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
  return formula::LmHeadLogits<double>(hidden, head_weight);
}

Vector TokenLosses(const Matrix& logits, std::span<const int32_t> targets) {
  CheckLogits(logits, targets);
  return formula::TokenLosses<double>(logits, targets);
}

Matrix TokenLossesBackward(const Matrix& logits,
                           std::span<const int32_t> targets,
                           const Vector& d_token_losses) {
  CheckLogits(logits, targets);
  SOFTMOE_CHECK(d_token_losses.size() == logits.rows());
  return formula::TokenLossesBackward<double>(
      formula::SoftmaxRows<double>(logits), targets, d_token_losses);
}

LmHeadGradients LmHeadBackward(const Matrix& hidden, const Matrix& head_weight,
                               std::span<const int32_t> targets,
                               const Vector& d_token_losses) {
  return formula::LmHeadBackward<double>(
      TokenLossesBackward(LmHeadLogits(hidden, head_weight), targets,
                          d_token_losses),
      hidden, head_weight);
}

}  // namespace softmoe::reference
