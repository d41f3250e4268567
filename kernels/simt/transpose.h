// SPDX-License-Identifier: Apache-2.0
//
// transpose.h - Floats::kWidth rows of memory to and from one Floats per
// column, the form that groups across rows work on.
#ifndef SOFTMOE_KERNELS_SIMT_TRANSPOSE_H_
#define SOFTMOE_KERNELS_SIMT_TRANSPOSE_H_

#include "kernels/simd/simd.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// columns_out[c], lane i = rows[i * stride + c]; lanes from num_rows on repeat
// the last row; columns_out holds `columns`, and zeros up to the next multiple
// of Floats::kWidth. Returns whether every element is finite.
SOFTMOE_INLINE bool LoadRows(const float* rows, int64_t stride, int num_rows,
                             int64_t columns, Floats* columns_out) {
  constexpr int kWidth = Floats::kWidth;
  const Floats infinity(__builtin_inff());
  Floats block[kWidth];
  Mask finite = Floats(0.0f) < infinity;
  for (int64_t c = 0; c < columns; c += kWidth) {
    const int count =
        columns - c < kWidth ? static_cast<int>(columns - c) : kWidth;
    for (int i = 0; i < kWidth; ++i) {
      const float* row = rows + (i < num_rows ? i : num_rows - 1) * stride + c;
      block[i] =
          count == kWidth ? Floats::Load(row) : Floats::LoadPartial(row, count);
      finite = finite & (Abs(block[i]) < infinity);
    }
    Transpose(block);
    for (int i = 0; i < kWidth; ++i) columns_out[c + i] = block[i];
  }
  return !Any(!finite);
}

// The inverse, for the first num_rows rows. columns_in is as long as
// columns_out is above; what lies past `columns` is not stored.
SOFTMOE_INLINE void StoreRows(const Floats* columns_in, int64_t columns,
                              int num_rows, float* rows, int64_t stride) {
  constexpr int kWidth = Floats::kWidth;
  Floats block[kWidth];
  for (int64_t c = 0; c < columns; c += kWidth) {
    const int count =
        columns - c < kWidth ? static_cast<int>(columns - c) : kWidth;
    for (int i = 0; i < kWidth; ++i) block[i] = columns_in[c + i];
    Transpose(block);
    for (int i = 0; i < num_rows; ++i) {
      float* row = rows + i * stride + c;
      if (count == kWidth) {
        block[i].Store(row);
      } else {
        block[i].StorePartial(row, count);
      }
    }
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_TRANSPOSE_H_
