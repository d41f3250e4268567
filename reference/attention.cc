// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.h"

#include <cmath>

namespace softmoe::reference {
namespace {

double Scale(const Matrix& q) {
  return 1 / std::sqrt(static_cast<double>(q.cols()));
}

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
  const Matrix logits = Scale(q) * Multiply(q, k.transpose());
  Matrix weights = Matrix::Zero(q.rows(), q.rows());
  for (int64_t t = 0; t < q.rows(); ++t) {
    const double largest = logits.row(t).head(t + 1).maxCoeff();
    weights.row(t).head(t + 1) =
        (logits.row(t).head(t + 1).array() - largest).exp();
    weights.row(t) /= weights.row(t).sum();
  }
  return weights;
}

Matrix CausalAttention(const Matrix& q, const Matrix& k, const Matrix& v) {
  CheckHead(q, k, v);
  const Matrix weights = CausalAttentionWeights(q, k);
  Matrix out(v.rows(), v.cols());
  // Only the past is read: a later value that is NaN must not become 0 * NaN.
  for (int64_t t = 0; t < v.rows(); ++t) {
    out.row(t) = Multiply(weights.row(t).head(t + 1), v.topRows(t + 1));
  }
  return out;
}

CausalAttentionGradients CausalAttentionBackward(const Matrix& q,
                                                 const Matrix& k,
                                                 const Matrix& v,
                                                 const Matrix& d_out) {
  CheckHead(q, k, v);
  SOFTMOE_CHECK(d_out.rows() == v.rows() && d_out.cols() == v.cols());
  const Matrix weights = CausalAttentionWeights(q, k);
  const Matrix d_weights = Multiply(d_out, v.transpose());
  const Vector row_sums = weights.cwiseProduct(d_weights).rowwise().sum();
  // Above the diagonal weights are 0, and so is the gradient.
  const Matrix d_logits = weights.cwiseProduct(d_weights.colwise() - row_sums);
  CausalAttentionGradients gradients;
  gradients.d_q = Scale(q) * Multiply(d_logits, k);
  gradients.d_k = Scale(q) * Multiply(d_logits.transpose(), q);
  gradients.d_v = Multiply(weights.transpose(), d_out);
  return gradients;
}

Matrix MultiHeadAttention(const Matrix& qkv, int64_t num_sequences,
                          int64_t num_heads) {
  CheckPacked(qkv, num_sequences, num_heads);
  const int64_t length = qkv.rows() / num_sequences;
  const int64_t d_model = qkv.cols() / 3;
  const int64_t head_dim = d_model / num_heads;
  Matrix out(qkv.rows(), d_model);
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t head = 0; head < num_heads; ++head) {
      const int64_t column = head * head_dim;
      auto part = [&](int64_t which) {
        return qkv.block(s * length, which * d_model + column, length,
                         head_dim);
      };
      out.block(s * length, column, length, head_dim) =
          CausalAttention(part(0), part(1), part(2));
    }
  }
  return out;
}

Matrix MultiHeadAttentionBackward(const Matrix& qkv, int64_t num_sequences,
                                  int64_t num_heads, const Matrix& d_out) {
  CheckPacked(qkv, num_sequences, num_heads);
  const int64_t length = qkv.rows() / num_sequences;
  const int64_t d_model = qkv.cols() / 3;
  const int64_t head_dim = d_model / num_heads;
  SOFTMOE_CHECK(d_out.rows() == qkv.rows() && d_out.cols() == d_model);
  Matrix d_qkv(qkv.rows(), qkv.cols());
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t head = 0; head < num_heads; ++head) {
      const int64_t column = head * head_dim;
      auto part = [&](auto& packed, int64_t which) {
        return packed.block(s * length, which * d_model + column, length,
                            head_dim);
      };
      const CausalAttentionGradients gradients = CausalAttentionBackward(
          part(qkv, 0), part(qkv, 1), part(qkv, 2), part(d_out, 0));
      part(d_qkv, 0) = gradients.d_q;
      part(d_qkv, 1) = gradients.d_k;
      part(d_qkv, 2) = gradients.d_v;
    }
  }
  return d_qkv;
}

}  // namespace softmoe::reference
