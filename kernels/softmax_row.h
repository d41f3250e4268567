// SPDX-License-Identifier: Apache-2.0
//
// softmax_row.h - the pieces of a softmax over a row in a cache. For per-ISA
// sources only (isa.h).
//
// A row is padded to a multiple of 16 floats with what does not count: -inf
// before, 0 after the exponential. Sums keep 16 running values, one for each
// j % 16, at every ISA level, so the bits are the same.
#ifndef SOFTMOE_KERNELS_SOFTMAX_ROW_H_
#define SOFTMOE_KERNELS_SOFTMAX_ROW_H_

#include <cstdint>

#include "kernels/gemm_pack.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kRowParts = 16 / Floats::kWidth;

inline int64_t PaddedRow(int64_t n) { return (n + 15) / 16 * 16; }

// row[n, PaddedRow(n)) = value.
SOFTMOE_INLINE void PadRow(float* row, int64_t n, float value) {
  for (int64_t j = n; j < PaddedRow(n); ++j) row[j] = value;
}

// The largest of row[0, padded).
SOFTMOE_INLINE float RowMax(const float* row, int64_t padded) {
  Floats largest = Floats::Load(row);
  for (int64_t j = Floats::kWidth; j < padded; j += Floats::kWidth) {
    largest = Max(largest, Floats::Load(row + j));
  }
  return ReduceMax(largest);
}

// row[j] = e^(scale*row[j] - shift); returns their sum. scale > 0.
SOFTMOE_INLINE float ExpRow(float* row, int64_t padded, float scale,
                            float shift) {
  Floats sums[kRowParts];
  for (Floats& part : sums) part = Floats(0.0f);
  const Floats factor(scale), minus_shift(-shift);
  for (int64_t j = 0; j < padded; j += 16) {
#pragma GCC unroll 2
    for (int p = 0; p < kRowParts; ++p) {
      float* x = row + j + p * Floats::kWidth;
      const Floats e = Exp(Fma(Floats::Load(x), factor, minus_shift));
      e.Store(x);
      sums[p] += e;
    }
  }
  return ReduceSum16(sums);
}

// row[j] *= factor.
SOFTMOE_INLINE void ScaleRow(float* row, int64_t padded, float factor) {
  const Floats by(factor);
  for (int64_t j = 0; j < padded; j += Floats::kWidth) {
    (Floats::Load(row + j) * by).Store(row + j);
  }
}

// <a, b> over n elements.
SOFTMOE_INLINE float DotRows(const float* a, const float* b, int64_t n) {
  Floats sums[kRowParts];
  for (Floats& part : sums) part = Floats(0.0f);
  for (int64_t j = 0; j < n; j += 16) {
#pragma GCC unroll 2
    for (int p = 0; p < kRowParts; ++p) {
      const int64_t i = j + p * Floats::kWidth;
      if (i < n) {
        sums[p] = Fma(LoadUpTo(a + i, n - i), LoadUpTo(b + i, n - i), sums[p]);
      }
    }
  }
  return ReduceSum16(sums);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SOFTMAX_ROW_H_
