// SPDX-License-Identifier: Apache-2.0
#include "reference/rope.h"

#include <cmath>

namespace softmoe::reference {
namespace {

// `direction` is 1 to rotate, -1 to rotate back.
Matrix Rotate(const Matrix& rows, int64_t head_dim, double base,
              int64_t first_position, int direction) {
  SOFTMOE_CHECK(head_dim > 0 && head_dim % 2 == 0 &&
                rows.cols() % head_dim == 0)
      << "head_dim=" << head_dim << " columns=" << rows.cols();
  const int64_t half = head_dim / 2;
  Matrix rotated(rows.rows(), rows.cols());
  for (int64_t t = 0; t < rows.rows(); ++t) {
    for (int64_t head = 0; head < rows.cols(); head += head_dim) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            direction * RopeAngle(first_position + t, i, head_dim, base);
        const double first = rows(t, head + i);
        const double second = rows(t, head + half + i);
        rotated(t, head + i) =
            first * std::cos(angle) - second * std::sin(angle);
        rotated(t, head + half + i) =
            first * std::sin(angle) + second * std::cos(angle);
      }
    }
  }
  return rotated;
}

Matrix RotateQueriesAndKeys(const Matrix& qkv, int64_t num_sequences,
                            int64_t num_heads, double base, int direction) {
  SOFTMOE_CHECK(num_sequences > 0 && qkv.rows() % num_sequences == 0 &&
                num_heads > 0 && qkv.cols() % (3 * num_heads) == 0)
      << "qkv [" << qkv.rows() << ", " << qkv.cols() << "], " << num_sequences
      << " sequences, " << num_heads << " heads";
  const int64_t length = qkv.rows() / num_sequences;
  const int64_t d_model = qkv.cols() / 3;
  Matrix out = qkv;
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t part = 0; part < 2; ++part) {  // q, k
      out.block(s * length, part * d_model, length, d_model) =
          Rotate(qkv.block(s * length, part * d_model, length, d_model),
                 d_model / num_heads, base, 0, direction);
    }
  }
  return out;
}

}  // namespace

double RopeAngle(int64_t position, int64_t pair, int64_t head_dim,
                 double base) {
  return static_cast<double>(position) *
         std::pow(base, -2.0 * static_cast<double>(pair) /
                            static_cast<double>(head_dim));
}

Matrix RotateHeads(const Matrix& rows, int64_t head_dim, double base,
                   int64_t first_position) {
  return Rotate(rows, head_dim, base, first_position, 1);
}

Matrix RopeForward(const Matrix& qkv, int64_t num_sequences, int64_t num_heads,
                   double base) {
  return RotateQueriesAndKeys(qkv, num_sequences, num_heads, base, 1);
}

Matrix RopeBackward(const Matrix& d_out, int64_t num_sequences,
                    int64_t num_heads, double base) {
  return RotateQueriesAndKeys(d_out, num_sequences, num_heads, base, -1);
}

}  // namespace softmoe::reference
