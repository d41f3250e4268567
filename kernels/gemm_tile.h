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
// Per k, that is 24 multiplications of vectors at v4 and 12 at v3, for two
// vectors loaded and 12 or 6 numbers broadcast: the multipliers are the limit.
// There is a kernel for every number of rows, so a tile of few rows costs what
// its rows cost.
#ifndef SOFTMOE_KERNELS_GEMM_TILE_H_
#define SOFTMOE_KERNELS_GEMM_TILE_H_

#include <cstdint>

#include "kernels/simd/simd.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kTileRows = Floats::kWidth == 16 ? 12 : 6;
inline constexpr int kTileVectors = 2;
inline constexpr int kTileColumns = kTileVectors * Floats::kWidth;

// How a tile of A is stored: element (row, k) at a[row*stride + k], or at
// a[row + k*stride].
enum class TileA { kRowMajor, kInterleaved };

// B's row k is at b + k*b_stride and readable up to a whole vector; C has
// `columns` columns, which may fill the last vector only partly.
template <int kRows, int kVectors, TileA kLayout>
void MultiplyTile(int64_t depth, const float* __restrict a, int64_t a_stride,
                  const float* __restrict b, int64_t b_stride,
                  float* __restrict c, int64_t c_stride, int64_t columns,
                  bool accumulate) {
  constexpr int kWidth = Floats::kWidth;
  const int last = static_cast<int>(columns - (kVectors - 1) * kWidth);
  Floats sum[kRows][kVectors];
  if (!accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Floats(0.0f);
    }
  } else if (last == kWidth) {
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
      const float* row = c + r * c_stride;
      if constexpr (kVectors > 1) sum[r][0] = Floats::Load(row);
      sum[r][kVectors - 1] =
          Floats::LoadPartial(row + (kVectors - 1) * kWidth, last);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    Floats row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = Floats::Load(b + v * kWidth);
    b += b_stride;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float value = kLayout == TileA::kRowMajor ? a[r * a_stride] : a[r];
      const Floats left(value);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = Fma(left, row[v], sum[r][v]);
      }
    }
    a += kLayout == TileA::kRowMajor ? 1 : a_stride;
  }
  if (last == kWidth) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v].Store(c + r * c_stride + v * kWidth);
      }
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* row = c + r * c_stride;
      if constexpr (kVectors > 1) sum[r][0].Store(row);
      sum[r][kVectors - 1].StorePartial(row + (kVectors - 1) * kWidth, last);
    }
  }
}

using TileFunction = void (*)(int64_t depth, const float* a, int64_t a_stride,
                              const float* b, int64_t b_stride, float* c,
                              int64_t c_stride, int64_t columns,
                              bool accumulate);

// The kernel for `rows` in [1, kTileRows] and `columns` in [1, kTileColumns].
template <TileA kLayout>
inline TileFunction TileKernel(int64_t rows, int64_t columns) {
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
  // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): rows > 0
  return kTable[rows - 1][columns > Floats::kWidth ? 1 : 0];
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_GEMM_TILE_H_
