// SPDX-License-Identifier: Apache-2.0
//
// rope.h - rotary position embedding of queries and keys (reference, double).
//
//   (x_i, x_{i+h/2}) -> (x_i cos a - x_{i+h/2} sin a,
//                        x_i sin a + x_{i+h/2} cos a),   i < h/2
//   a = position * base^(-2i/h),   h = head_dim      SPEC.md 3.2 (rotate-half)
//
// Positions restart at 0 in every sequence.
#ifndef SOFTMOE_REFERENCE_ROPE_H_
#define SOFTMOE_REFERENCE_ROPE_H_

#include <cmath>
#include <cstdint>

#include "reference/matrix.h"

namespace softmoe::reference {

// The angle (radians) by which pair `pair` < head_dim/2 turns at `position`.
double RopeAngle(int64_t position, int64_t pair, int64_t head_dim, double base);

// Rotates every head of every row of `rows` [sequence_length, num_heads *
// head_dim]; row t has position first_position + t. head_dim is even.
Matrix RotateHeads(const Matrix& rows, int64_t head_dim, double base,
                   int64_t first_position = 0);

// Rotates q and k in `qkv` [num_sequences*sequence_length, 3*num_heads*
// head_dim] (all q heads, then k, then v) and leaves v alone.
Matrix RopeForward(const Matrix& qkv, int64_t num_sequences, int64_t num_heads,
                   double base);

// Gradient of RopeForward: a rotation's transpose is the rotation back.
Matrix RopeBackward(const Matrix& d_out, int64_t num_sequences,
                    int64_t num_heads, double base);

// The rotation over any scalar (scalar.h). Angles are doubles: they depend on
// positions alone.
namespace formula {

// Every head of every row. `direction` is 1 to rotate, -1 to rotate back.
template <typename N>
MatrixOf<N> RotateHeads(const MatrixOf<N>& rows, int64_t head_dim, double base,
                        int64_t first_position, int direction) {
  const int64_t half = head_dim / 2;
  MatrixOf<N> rotated(rows.rows(), rows.cols());
  for (int64_t t = 0; t < rows.rows(); ++t) {
    for (int64_t head = 0; head < rows.cols(); head += head_dim) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            direction * RopeAngle(first_position + t, i, head_dim, base);
        const N& first = rows(t, head + i);
        const N& second = rows(t, head + half + i);
        rotated(t, head + i) =
            first * std::cos(angle) - second * std::sin(angle);
        rotated(t, head + half + i) =
            first * std::sin(angle) + second * std::cos(angle);
      }
    }
  }
  return rotated;
}

// q and k of every sequence; v stays.
template <typename N>
MatrixOf<N> RotateQueriesAndKeys(const MatrixOf<N>& qkv, int64_t num_sequences,
                                 int64_t num_heads, double base,
                                 int direction) {
  const int64_t length = qkv.rows() / num_sequences;
  const int64_t d_model = qkv.cols() / 3;
  MatrixOf<N> out = qkv;
  for (int64_t s = 0; s < num_sequences; ++s) {
    for (int64_t part = 0; part < 2; ++part) {  // q, k
      out.block(s * length, part * d_model, length, d_model) =
          RotateHeads<N>(qkv.block(s * length, part * d_model, length, d_model),
                         d_model / num_heads, base, 0, direction);
    }
  }
  return out;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ROPE_H_
