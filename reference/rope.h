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

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ROPE_H_
