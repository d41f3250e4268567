// SPDX-License-Identifier: Apache-2.0
//
// gemm_pack.h - copies parts of A and B into the order in which the tile
// kernels read them. For per-ISA sources only (isa.h).
//
// A tile of A is either rows side by side (RowMajor) or its columns one after
// the other (Interleaved); B is cut into panels of kTileColumns columns, each
// [depth, kTileColumns]. What lies past the last column, up to a whole vector,
// is computed with and then dropped: any number will do.
#ifndef SOFTMOE_KERNELS_GEMM_PACK_H_
#define SOFTMOE_KERNELS_GEMM_PACK_H_

#include <cstdint>

#include "kernels/gemm_tile.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Floats from one panel to the next: off a power of two by two cache lines, so
// that writing one row of all panels does not fall into one set of the cache.
inline int64_t PanelStride(int64_t depth) {
  return depth * kTileColumns + 2 * Floats::kWidth;
}

// Floats from one row of a packed A tile to the next, for the same reason.
inline int64_t TileRowStride(int64_t depth) {
  return (depth + 15) / 16 * 16 + 16;
}

// A vector from p, of which only the first `left` floats may be touched.
SOFTMOE_INLINE Floats LoadUpTo(const float* p, int64_t left) {
  return left < Floats::kWidth ? Floats::LoadPartial(p, static_cast<int>(left))
                               : Floats::Load(p);
}

// The converse: only the first `left` floats at p are written.
SOFTMOE_INLINE void StoreUpTo(float* p, int64_t left, Floats x) {
  if (left < Floats::kWidth) {
    x.StorePartial(p, static_cast<int>(left));
  } else {
    x.Store(p);
  }
}

// dst[i] = src[i] for i < n, in whole vectors except for the last.
SOFTMOE_INLINE void CopyFloats(float* __restrict dst,
                               const float* __restrict src, int64_t n) {
  for (int64_t i = 0; i < n; i += Floats::kWidth) {
    StoreUpTo(dst + i, n - i, LoadUpTo(src + i, n - i));
  }
}

// How many rows ahead are prefetched.
inline constexpr int64_t kRowsAhead = 8;

// Panels of a B whose rows are contiguous; row(k) points at column 0 of row k,
// which may be gathered from anywhere.
template <class RowOf>
inline void PackPanels(RowOf row, int64_t depth_begin, int64_t depth,
                       int64_t col_begin, int64_t columns,
                       float* __restrict dst) {
  const int64_t stride = PanelStride(depth);
  for (int64_t k = 0; k < depth; ++k) {
    const float* __restrict src = row(depth_begin + k) + col_begin;
    // Rows are often a page apart, where the hardware does not look ahead.
    const float* ahead = k + kRowsAhead < depth
                             ? row(depth_begin + k + kRowsAhead) + col_begin
                             : src;
    float* __restrict out = dst + k * kTileColumns;
    int64_t j = 0;
    for (; j + kTileColumns <= columns; j += kTileColumns) {
#pragma GCC unroll 2
      for (int line = 0; line < kTileColumns; line += 16) {
        __builtin_prefetch(ahead + j + line);
      }
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) {
        Floats::Load(src + j + v * Floats::kWidth)
            .Store(out + v * Floats::kWidth);
      }
      out += stride;
    }
    for (int64_t v = 0; j < columns; ++v, j += Floats::kWidth) {
      LoadUpTo(src + j, columns - j).Store(out + v * Floats::kWidth);
    }
  }
}

// Panels of a B that is stored transposed: column j of B is the contiguous
// row(j), at least depth_begin + depth long.
template <class RowOf>
inline void PackPanelsTransposed(RowOf row, int64_t depth_begin, int64_t depth,
                                 int64_t col_begin, int64_t columns,
                                 float* __restrict dst) {
  constexpr int kWidth = Floats::kWidth;
  const int64_t stride = PanelStride(depth);
  for (int64_t j = 0; j < columns; j += kWidth) {
    float* __restrict out = dst + j / kTileColumns * stride + j % kTileColumns;
    const int64_t count = columns - j < kWidth ? columns - j : kWidth;
    const float* src[kWidth];
    for (int64_t r = 0; r < kWidth; ++r) {
      // Past the last column, that column is repeated; its results are not
      // stored.
      src[r] = row(col_begin + j + (r < count ? r : count - 1)) + depth_begin;
    }
    for (int64_t k = 0; k < depth; k += kWidth) {
      Floats block[kWidth];
      const int64_t left = depth - k;
#pragma GCC unroll 16
      for (int r = 0; r < kWidth; ++r) {
        block[r] = LoadUpTo(src[r] + k, left);
      }
      Transpose(block);
      const int64_t rows = left < kWidth ? left : kWidth;
      for (int64_t r = 0; r < rows; ++r) {
        block[r].Store(out + (k + r) * kTileColumns);
      }
    }
  }
}

// An interleaved A tile: columns [col_begin, col_begin + columns) of a matrix
// whose row k is the contiguous row(k), for A stored transposed.
// dst holds depth*kTileRows floats and one vector more.
template <class RowOf>
inline void PackInterleaved(RowOf row, int64_t depth_begin, int64_t depth,
                            int64_t col_begin, int64_t columns,
                            float* __restrict dst) {
  for (int64_t k = 0; k < depth; ++k) {
    const float* __restrict src = row(depth_begin + k) + col_begin;
    if (k + kRowsAhead < depth) {
      __builtin_prefetch(row(depth_begin + k + kRowsAhead) + col_begin);
      __builtin_prefetch(row(depth_begin + k + kRowsAhead) + col_begin +
                         kTileRows - 1);
    }
    // Writes past the tile's row are overwritten by the next k.
    static_assert(kTileRows <= Floats::kWidth);
    LoadUpTo(src, columns).Store(dst + k * kTileRows);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_GEMM_PACK_H_
