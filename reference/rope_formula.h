// SPDX-License-Identifier: Apache-2.0
//
// rope_formula.h - rope.h over any scalar (scalar.h). Angles are doubles: they
// depend on positions alone.
#ifndef SOFTMOE_REFERENCE_ROPE_FORMULA_H_
#define SOFTMOE_REFERENCE_ROPE_FORMULA_H_

#include <cmath>

#include "reference/matrix.h"
#include "reference/rope.h"

namespace softmoe::reference::formula {

// (x_i, x_{i+h/2}) -> (x_i cos a - x_{i+h/2} sin a,
//                      x_i sin a + x_{i+h/2} cos a),   i < h/2
// in every head of every row. `direction` is 1 to rotate, -1 to rotate back.
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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_ROPE_FORMULA_H_
