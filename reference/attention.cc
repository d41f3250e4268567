// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.h"

#include "core/errors.h"

namespace softmoe::reference {

void CheckPacked(const Matrix& qkv, int64_t num_sequences, int64_t num_heads) {
  SOFTMOE_CHECK(num_sequences > 0 && qkv.rows() % num_sequences == 0 &&
                num_heads > 0 && qkv.cols() % (3 * num_heads) == 0)
      << "qkv [" << qkv.rows() << ", " << qkv.cols() << "], " << num_sequences
      << " sequences, " << num_heads << " heads";
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
