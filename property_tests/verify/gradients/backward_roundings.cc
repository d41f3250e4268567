// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/backward_roundings.h"

#include <algorithm>

namespace softmoe::verify {

double BackwardRoundings(const ModelConfig& m, int64_t num_tokens) {
  const double layers = static_cast<double>(m.num_layers);
  const double d = static_cast<double>(m.d_model);
  const double f = static_cast<double>(m.d_ffn);
  const double experts = static_cast<double>(m.num_experts);
  const double head_dim = d / static_cast<double>(m.num_heads);
  const double length = static_cast<double>(m.sequence_length);
  const double tokens = static_cast<double>(num_tokens);

  // A product with a sum of n terms makes n roundings: 1 of the product, n - 1
  // of the additions. Head: p (a quotient), p - 1, times loss_scale; d_logits
  // W.
  const double head = 3 + static_cast<double>(m.vocab_size);
  // v = d_out w, n = r x twice, v n, its mean (d), times n, v - that, times r;
  // r, a quotient, thrice.
  const double norm = d + 10;
  // d_out W_o^T; d_out v^T; the row sums of d_w w, the difference, times w, w
  // itself a quotient twice; times k, the scale; the rotation: a product, a
  // sum, and sine or cosine, 2; d_qkv W^T.
  const double attention =
      d + head_dim + (length + 4) + (length + 1) + 4 + 3 * d;
  // Times the gate; d_out W_down^T; times up, times SiLU' with 4 of its own;
  // d_gate_up W^T.
  const double expert = 1 + d + 6 + 2 * f;
  // q: two exponentials (2 each), the sum, the quotient; sum q v; v - g, times
  // f, an exponential (2), over T. A softmax makes fewer.
  const double lapsum = 4 + experts + 1 + experts + 1 + 1 + 2 + 1;
  // d_out . expert_out (more than the coefficients of the auxiliary losses);
  // these added and scaled; d_scores W^T; jitter.
  const double router = std::max(d, 6.0) + lapsum + 3 + experts + 1;
  // Of every expert and of the router, added up.
  const double moe = std::max(expert, router) + experts + 1;
  const double half_block = std::max(attention, moe) + norm + 1;
  // A sum over tokens, of n = r x for a norm; for the budget, of d k_l, and the
  // softmax of the logits: q v, their sum, v - that, times q, which is a
  // quotient twice, times the budget.
  const double parameter = tokens + layers + 7;
  return std::max(head + norm, half_block) + parameter;
}

}  // namespace softmoe::verify
