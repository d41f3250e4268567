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

#include <cmath>
#include <cstdint>

#include "reference/matrix.h"
#include "reference/scalar.h"
#include "reference/softmax.h"

namespace softmoe::reference {

// Checks that `qkv`, packed as below, consists of whole sequences and heads.
void CheckPacked(const Matrix& qkv, int64_t num_sequences, int64_t num_heads);

// The gradient of one head of one sequence.
template <typename N>
struct CausalAttentionGradientsOf {
  MatrixOf<N> d_q, d_k, d_v;  // [sequence_length, head_dim]
};

// All heads of all sequences. qkv [num_sequences*sequence_length, 3*d_model],
// all q heads, then k, then v, already rotated; result [.., d_model].
Matrix MultiHeadAttention(const Matrix& qkv, int64_t num_sequences,
                          int64_t num_heads);

// Gradient with respect to `qkv` for the cotangent `d_out` [.., d_model].
Matrix MultiHeadAttentionBackward(const Matrix& qkv, int64_t num_sequences,
                                  int64_t num_heads, const Matrix& d_out);

// The formulas, over any scalar (scalar.h).
namespace formula {

// 1 / sqrt(h)
template <typename N>
N AttentionScale(int64_t head_dim) {
  using std::sqrt;
  return 1 / sqrt(N(static_cast<double>(head_dim)));
}

// q_t k_s / sqrt(h) for s <= t, 0 above the diagonal.
template <typename N>
MatrixOf<N> AttentionLogits(const MatrixOf<N>& q, const MatrixOf<N>& k) {
  const N scale = AttentionScale<N>(q.cols());
  MatrixOf<N> logits = MatrixOf<N>::Constant(q.rows(), q.rows(), N(0));
  for (int64_t t = 0; t < q.rows(); ++t) {
    for (int64_t s = 0; s <= t; ++s) {
      logits(t, s) = scale * Dot<N>(q.row(t), k.row(s));
    }
  }
  return logits;
}

// The weights a_t = softmax_{s <= t}(logits_ts), 0 above the diagonal.
template <typename N>
MatrixOf<N> CausalSoftmax(const MatrixOf<N>& logits) {
  MatrixOf<N> weights =
      MatrixOf<N>::Constant(logits.rows(), logits.rows(), N(0));
  for (int64_t t = 0; t < logits.rows(); ++t) {
    weights.row(t).head(t + 1) = Softmax<N, Sum<N>>(logits.row(t).head(t + 1));
  }
  return weights;
}

// out_t = sum_{s <= t} a_ts v_s. No later value is read: 0 * NaN is NaN.
template <typename N>
MatrixOf<N> WeightedValues(const MatrixOf<N>& weights, const MatrixOf<N>& v) {
  MatrixOf<N> out(v.rows(), v.cols());
  for (int64_t t = 0; t < v.rows(); ++t) {
    for (int64_t j = 0; j < v.cols(); ++j) {
      out(t, j) = Dot<N>(weights.row(t).head(t + 1), v.col(j).head(t + 1));
    }
  }
  return out;
}

// One head of one sequence; q, k, v and result [sequence_length, head_dim].
template <typename N>
MatrixOf<N> CausalAttention(const MatrixOf<N>& q, const MatrixOf<N>& k,
                            const MatrixOf<N>& v) {
  return WeightedValues<N>(CausalSoftmax<N>(AttentionLogits<N>(q, k)), v);
}

// The gradient of CausalAttention, from its weights a:
//   d_v = a^T d_out,   d_s = a * (d_a - rowsum(a * d_a)),   d_a = d_out v^T
//   d_q = d_s k / sqrt(h),   d_k = d_s^T q / sqrt(h)
template <typename N>
CausalAttentionGradientsOf<N> CausalAttentionBackward(
    const MatrixOf<N>& weights, const MatrixOf<N>& q, const MatrixOf<N>& k,
    const MatrixOf<N>& v, const MatrixOf<N>& d_out) {
  const MatrixOf<N> d_weights = Multiply<N>(d_out, v.transpose());
  // Above the diagonal weights are 0, and so is the gradient.
  MatrixOf<N> d_logits(q.rows(), q.rows());
  for (int64_t t = 0; t < q.rows(); ++t) {
    const N row_sum = Dot<N>(weights.row(t), d_weights.row(t));
    for (int64_t s = 0; s < q.rows(); ++s) {
      d_logits(t, s) = weights(t, s) * (d_weights(t, s) - row_sum);
    }
  }
  const N scale = AttentionScale<N>(q.cols());
  CausalAttentionGradientsOf<N> gradients;
  gradients.d_q = Multiply<N>(d_logits, k);
  gradients.d_k = Multiply<N>(d_logits.transpose(), q);
  gradients.d_v = Multiply<N>(weights.transpose(), d_out);
  for (N& element : gradients.d_q.reshaped()) element = scale * element;
  for (N& element : gradients.d_k.reshaped()) element = scale * element;
  return gradients;
}

// The block of head `head` in part q, k or v (0, 1 or 2) of sequence `s` in
// `packed`, where parts [sequence_length, d_model] lie side by side.
struct HeadBlock {
  int64_t length, d_model, head_dim;

  template <typename Packed>
  auto operator()(Packed& packed, int64_t s, int64_t part, int64_t head) const {
    return packed.block(s * length, part * d_model + head * head_dim, length,
                        head_dim);
  }
};

// All heads of all sequences, each independently.
template <typename N>
MatrixOf<N> MultiHeadAttention(const MatrixOf<N>& qkv, int64_t num_sequences,
                               int64_t num_heads) {
  const HeadBlock block = {qkv.rows() / num_sequences, qkv.cols() / 3,
                           qkv.cols() / 3 / num_heads};
  MatrixOf<N> out(qkv.rows(), block.d_model);
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t head = 0; head < num_heads; ++head) {
      block(out, s, 0, head) =
          CausalAttention<N>(block(qkv, s, 0, head), block(qkv, s, 1, head),
                             block(qkv, s, 2, head));
    }
  }
  return out;
}

// The gradient of MultiHeadAttention with respect to qkv, packed like it.
template <typename N>
MatrixOf<N> MultiHeadAttentionBackward(const MatrixOf<N>& qkv,
                                       int64_t num_sequences, int64_t num_heads,
                                       const MatrixOf<N>& d_out) {
  const HeadBlock block = {qkv.rows() / num_sequences, qkv.cols() / 3,
                           qkv.cols() / 3 / num_heads};
  MatrixOf<N> d_qkv(qkv.rows(), qkv.cols());
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t head = 0; head < num_heads; ++head) {
      const MatrixOf<N> q = block(qkv, s, 0, head);
      const MatrixOf<N> k = block(qkv, s, 1, head);
      const CausalAttentionGradientsOf<N> gradients =
          CausalAttentionBackward<N>(CausalSoftmax<N>(AttentionLogits<N>(q, k)),
                                     q, k, block(qkv, s, 2, head),
                                     block(d_out, s, 0, head));
      block(d_qkv, s, 0, head) = gradients.d_q;
      block(d_qkv, s, 1, head) = gradients.d_k;
      block(d_qkv, s, 2, head) = gradients.d_v;
    }
  }
  return d_qkv;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ATTENTION_H_
