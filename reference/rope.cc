// SPDX-License-Identifier: Apache-2.0
#include "reference/rope.h"

#include <cmath>

#include "core/errors.h"
#include "reference/attention.h"

namespace softmoe::reference {
namespace {

void CheckHeadDim(int64_t head_dim, int64_t columns) {
  SOFTMOE_CHECK(head_dim > 0 && head_dim % 2 == 0 && columns % head_dim == 0)
      << "head_dim=" << head_dim << " columns=" << columns;
}

void CheckPairs(const Matrix& qkv, int64_t num_sequences, int64_t num_heads) {
  CheckPacked(qkv, num_sequences, num_heads);
  CheckHeadDim(qkv.cols() / 3 / num_heads, qkv.cols() / 3);
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
  CheckHeadDim(head_dim, rows.cols());
  return formula::RotateHeads<double>(rows, head_dim, base, first_position, 1);
}

Matrix RopeForward(const Matrix& qkv, int64_t num_sequences, int64_t num_heads,
                   double base) {
  CheckPairs(qkv, num_sequences, num_heads);
  return formula::RotateQueriesAndKeys<double>(qkv, num_sequences, num_heads,
                                               base, 1);
}

Matrix RopeBackward(const Matrix& d_out, int64_t num_sequences,
                    int64_t num_heads, double base) {
  CheckPairs(d_out, num_sequences, num_heads);
  return formula::RotateQueriesAndKeys<double>(d_out, num_sequences, num_heads,
                                               base, -1);
}

}  // namespace softmoe::reference
