// SPDX-License-Identifier: Apache-2.0
//
// attention.h - causal softmax attention (reference, double).
//
//   out_t = sum_{s <= t} a_ts v_s,   a_t = softmax_{s <= t}(q_t k_s / sqrt(h))
//
// h = head_dim; SPEC.md 3.2. All heads have keys and values of their own. No
// dropout. Errors: InternalError for shapes that do not fit.
#ifndef SOFTMOE_REFERENCE_ATTENTION_H_
#define SOFTMOE_REFERENCE_ATTENTION_H_

#include <cstdint>

#include "reference/matrix.h"

namespace softmoe::reference {

// The attention weights a [sequence_length, sequence_length] of one head; rows
// sum to 1, zero above the diagonal. q, k: [sequence_length, head_dim].
Matrix CausalAttentionWeights(const Matrix& q, const Matrix& k);

// One head of one sequence; q, k, v and result [sequence_length, head_dim].
Matrix CausalAttention(const Matrix& q, const Matrix& k, const Matrix& v);

template <typename N>
struct CausalAttentionGradientsOf {
  MatrixOf<N> d_q, d_k, d_v;  // [sequence_length, head_dim]
};
using CausalAttentionGradients = CausalAttentionGradientsOf<double>;

// Gradient of CausalAttention for the cotangent `d_out`:
//   d_v = a^T d_out,   d_s = a * (d_a - rowsum(a * d_a)),   d_a = d_out v^T
//   d_q = d_s k / sqrt(h),   d_k = d_s^T q / sqrt(h)
CausalAttentionGradients CausalAttentionBackward(const Matrix& q,
                                                 const Matrix& k,
                                                 const Matrix& v,
                                                 const Matrix& d_out);

// All heads of all sequences. qkv [num_sequences*sequence_length, 3*d_model],
// all q heads, then k, then v, already rotated; result [.., d_model].
Matrix MultiHeadAttention(const Matrix& qkv, int64_t num_sequences,
                          int64_t num_heads);

// Gradient with respect to `qkv` for the cotangent `d_out` [.., d_model].
Matrix MultiHeadAttentionBackward(const Matrix& qkv, int64_t num_sequences,
                                  int64_t num_heads, const Matrix& d_out);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ATTENTION_H_
