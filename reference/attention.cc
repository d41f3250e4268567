// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.h"

#include "core/errors.h"

namespace softmoe::reference {
namespace {

void CheckHead(const Matrix& q, const Matrix& k, const Matrix& v) {
  SOFTMOE_CHECK(q.rows() == k.rows() && q.cols() == k.cols() &&
                q.rows() == v.rows() && q.cols() == v.cols() && q.cols() > 0)
      << "q, k, v of different shapes";
}

void CheckPacked(const Matrix& qkv, int64_t num_sequences, int64_t num_heads) {
  SOFTMOE_CHECK(num_sequences > 0 && qkv.rows() % num_sequences == 0 &&
                num_heads > 0 && qkv.cols() % (3 * num_heads) == 0)
      << "qkv [" << qkv.rows() << ", " << qkv.cols() << "], " << num_sequences
      << " sequences, " << num_heads << " heads";
}

}  // namespace

Matrix CausalAttentionWeights(const Matrix& q, const Matrix& k) {
  SOFTMOE_CHECK(q.rows() == k.rows() && q.cols() == k.cols() && q.cols() > 0);
  return formula::CausalSoftmax<double>(formula::AttentionLogits<double>(q, k));
}

Matrix CausalAttention(const Matrix& q, const Matrix& k, const Matrix& v) {
  CheckHead(q, k, v);
  return formula::CausalAttention<double>(q, k, v);
}

Matrix MultiHeadAttention(const Matrix& qkv, int64_t num_sequences,
                          int64_t num_heads) {
  CheckPacked(qkv, num_sequences, num_heads);
  return formula::MultiHeadAttention<double>(qkv, num_sequences, num_heads);
}

Matrix MultiHeadAttentionBackward(const Matrix& qkv, int64_t num_sequences,
                                  int64_t num_heads, const Matrix& d_out) {
  CheckPacked(qkv, num_sequences, num_heads);
  SOFTMOE_CHECK(d_out.rows() == qkv.rows() && d_out.cols() == qkv.cols() / 3);
  return formula::MultiHeadAttentionBackward<double>(qkv, num_sequences,
                                                     num_heads, d_out);
}

}  // namespace softmoe::reference
