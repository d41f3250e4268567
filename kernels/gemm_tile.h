// SPDX-License-Identifier: Apache-2.0
//
// gemm_tile.h - the innermost loop of every matrix product: a tile of C that
// lives in registers while k runs. For per-ISA sources only (isa.h).
//
// C[rows, columns] (+)= A[rows, depth] B[depth, columns], where the columns are
// one or two vectors wide. Each element is one chain of fused multiply-adds
// over ascending k that starts from 0 or from what C holds, so cutting k into
// blocks, or C into other tiles, does not change a bit.
//
// Sizes: 12 x 32 at v4 (24 of 32 registers hold C), 6 x 16 at v3 (12 of 16).
// Both need every multiplier pipe for 24 resp. 12 cycles per k while they load
// two vectors and broadcast 12 resp. 6 numbers. There is a kernel for every
// number of rows, so a tile of few rows costs what its rows cost.
#ifndef SOFTMOE_KERNELS_GEMM_TILE_H_
#define SOFTMOE_KERNELS_GEMM_TILE_H_

#include <cstdint>

#include "kernels/simd.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kTileRows = Floats::kWidth == 16 ? 12 : 6;
inline constexpr int kTileVectors = 2;
inline constexpr int kTileColumns = kTileVectors * Floats::kWidth;

// How a tile of A is stored: element (row, k) at a[row*stride + k], or at
// a[row + k*stride].
enum class TileA { kRowMajor, kInterleaved };

// B's row k is at b + k*b_stride.
template <int kRows, int kVectors, TileA kLayout>
void MultiplyTile(int64_t depth, const float* __restrict a, int64_t a_stride,
                  const float* __restrict b, int64_t b_stride,
                  float* __restrict c, int64_t c_stride, bool accumulate) {
  constexpr int kWidth = Floats::kWidth;
  Floats sum[kRows][kVectors];
  if (accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Floats::Load(c + r * c_stride + v * kWidth);
      }
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Floats(0.0f);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Floats row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = Floats::Load(b + v * kWidth);
    b += b_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Floats left(kLayout == TileA::kRowMajor ? a[r * a_stride] : a[r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Fma(left, row[v], sum[r][v]);
      }
    }
    a += kLayout == TileA::kRowMajor ? 1 : a_stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v].Store(c + r * c_stride + v * kWidth);
    }
  }
}

using TileFunction = void (*)(int64_t depth, const float* a, int64_t a_stride,
                              const float* b, int64_t b_stride, float* c,
                              int64_t c_stride, bool accumulate);

// The kernel for `rows` in [1, kTileRows] and `vectors` in {1, 2}.
template <TileA kLayout>
inline TileFunction TileKernel(int64_t rows, int64_t vectors) {
#define SOFTMOE_TILE_ROW(n) \
  { MultiplyTile<n, 1, kLayout>, MultiplyTile<n, 2, kLayout> }
  static constexpr TileFunction kTable[kTileRows][kTileVectors] = {
      SOFTMOE_TILE_ROW(1),  SOFTMOE_TILE_ROW(2),  SOFTMOE_TILE_ROW(3),
      SOFTMOE_TILE_ROW(4),  SOFTMOE_TILE_ROW(5),  SOFTMOE_TILE_ROW(6),
#ifdef __AVX512F__
      SOFTMOE_TILE_ROW(7),  SOFTMOE_TILE_ROW(8),  SOFTMOE_TILE_ROW(9),
      SOFTMOE_TILE_ROW(10), SOFTMOE_TILE_ROW(11), SOFTMOE_TILE_ROW(12),
#endif
  };
#undef SOFTMOE_TILE_ROW
  return kTable[rows - 1][vectors - 1];
}

// As the kernel, for any number of columns in [1, kTileColumns]. B's rows must
// be readable (and finite) up to the next whole vector; C is not touched there.
template <TileA kLayout>
inline void MultiplyTileTail(int64_t rows, int64_t columns, int64_t depth,
                             const float* a, int64_t a_stride, const float* b,
                             int64_t b_stride, float* c, int64_t c_stride,
                             bool accumulate) {
  const int64_t vectors = (columns + Floats::kWidth - 1) / Floats::kWidth;
  const TileFunction kernel = TileKernel<kLayout>(rows, vectors);
  if (columns == vectors * Floats::kWidth) {
    kernel(depth, a, a_stride, b, b_stride, c, c_stride, accumulate);
    return;
  }
  alignas(64) float whole[kTileRows * kTileColumns];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < kTileColumns; ++j) {
      whole[r * kTileColumns + j] =
          accumulate && j < columns ? c[r * c_stride + j] : 0.0f;
    }
  }
  kernel(depth, a, a_stride, b, b_stride, whole, kTileColumns, true);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      c[r * c_stride + j] = whole[r * kTileColumns + j];
    }
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_GEMM_TILE_H_
