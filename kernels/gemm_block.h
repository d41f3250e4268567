// SPDX-License-Identifier: Apache-2.0
//
// gemm_block.h - one thread's part of a matrix product: a block of C, cut for
// the caches. For per-ISA sources only (isa.h).
//
//   for each group of columns, for each block of k:
//     pack B                    at most 256 x 512, 512 KiB: stays in L2
//     for each tile of rows:
//       pack A                  at most 12 x 256, 12 KiB: stays in L1
//       for each panel of the group: multiply
//
// Functors supply A and B, so that gathering rows or computing them on the way
// costs no pass over memory of its own.
#ifndef SOFTMOE_KERNELS_GEMM_BLOCK_H_
#define SOFTMOE_KERNELS_GEMM_BLOCK_H_

#include <cstdint>

#include "kernels/gemm_pack.h"
#include "kernels/scratch.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int64_t kBlockDepth = 256;
inline constexpr int64_t kBlockColumns = 512;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Below this many multiply-adds per thread, waking it costs more than it saves
// (a fork and join is about 2 us, a thread does some 50 per ns).
inline constexpr int64_t kMinWork = 1 << 16;

// How many of `threads` have that much of `work`.
inline int64_t UsefulThreads(int64_t work, int64_t threads) {
  return Larger(1, Smaller(threads, work / kMinWork));
}

// Part [begin, end) of [0, total): piece `i` of `pieces`, in units of `unit`.
struct Range {
  int64_t begin, end;
};
inline Range Piece(int64_t total, int64_t pieces, int64_t i, int64_t unit = 1) {
  const int64_t units = CeilDiv(total, unit);
  return {Smaller(units * i / pieces * unit, total),
          Smaller(units * (i + 1) / pieces * unit, total)};
}

// Rows and columns of C that the calling thread computes.
struct CBlock {
  Range rows, columns;
  int64_t depth;  // k, all of it
  float* c;       // element (0, 0)
  int64_t c_stride;
  bool accumulate;
};

// Floats of a packed tile of A, for any block of k: whole cache lines.
inline int64_t TileScratch(int64_t depth) {
  return kTileRows * TileRowStride(Smaller(depth, kBlockDepth));
}

// Floats of scratch that MultiplyBlock needs, for any block with at most this
// depth and these columns: a tile of A, and the panels of B. (No block of k and
// no group of columns is larger than kBlockDepth and kBlockColumns, for they
// are cut in units that divide these.)
inline int64_t BlockScratch(int64_t depth, int64_t columns) {
  const int64_t panels = CeilDiv(Smaller(columns, kBlockColumns), kTileColumns);
  return TileScratch(depth) + panels * PanelStride(Smaller(depth, kBlockDepth));
}

// Computes `block`.
//   pack_a(row, rows, k, depth, dst)   one tile of A in layout kLayout:
//                                      RowMajor at stride TileRowStride(depth)
//   pack_b(k, depth, column, columns, dst)   panels
//   done(row, rows, column, columns)   called when this part of C is complete,
//                                      while it is still in a cache
template <TileA kLayout, class PackA, class PackB, class Done>
inline void MultiplyBlock(const CBlock& block, float* scratch, PackA pack_a,
                          PackB pack_b, Done done) {
  const int64_t num_rows = block.rows.end - block.rows.begin;
  const int64_t num_columns = block.columns.end - block.columns.begin;
  if (num_rows <= 0 || num_columns <= 0) return;

  const int64_t row_tiles = CeilDiv(num_rows, kTileRows);
  const int64_t groups = CeilDiv(num_columns, kBlockColumns);
  // An empty sum is one block of depth 0: it writes the zeros.
  const int64_t k_blocks = Larger(1, CeilDiv(block.depth, kBlockDepth));
  float* const packed_a = scratch;
  float* const packed_b = scratch + TileScratch(block.depth);
  for (int64_t g = 0; g < groups; ++g) {
    // In units of 32 at every ISA level: `done` may add over a group.
    const Range group = Piece(num_columns, groups, g, 32);
    const int64_t column = block.columns.begin + group.begin;
    const int64_t columns = group.end - group.begin;
    for (int64_t kb = 0; kb < k_blocks; ++kb) {
      const Range k = Piece(block.depth, k_blocks, kb, 16);
      const int64_t depth = k.end - k.begin;
      const int64_t a_stride =
          kLayout == TileA::kRowMajor ? TileRowStride(depth) : kTileRows;
      pack_b(k.begin, depth, column, columns, packed_b);
      for (int64_t t = 0; t < row_tiles; ++t) {
        const Range tile = Piece(num_rows, row_tiles, t);
        const int64_t row = block.rows.begin + tile.begin;
        const int64_t rows = tile.end - tile.begin;
        pack_a(row, rows, k.begin, depth, packed_a);
        const bool accumulate = block.accumulate || kb > 0;
        float* c = block.c + row * block.c_stride + column;
        for (int64_t j = 0; j < columns; j += kTileColumns) {
          const int64_t width = Smaller(columns - j, kTileColumns);
          TileKernel<kLayout>(rows, width)(
              depth, packed_a, a_stride,
              packed_b + j / kTileColumns * PanelStride(depth), kTileColumns,
              c + j, block.c_stride, width, accumulate);
        }
        if (kb == k_blocks - 1) done(row, rows, column, columns);
      }
    }
  }
}

// pack_a for rows that are contiguous; row(i) points at column 0 of A's row i.
template <class RowOf>
inline auto PackRows(RowOf row) {
  return
      [row](int64_t first, int64_t rows, int64_t k, int64_t depth, float* dst) {
        for (int64_t r = 0; r < rows; ++r) {
          CopyFloats(dst + r * TileRowStride(depth), row(first + r) + k, depth);
        }
      };
}

// pack_a for an A that is stored transposed; row(k) points at A(0, k).
template <class RowOf>
inline auto PackColumns(RowOf row) {
  return
      [row](int64_t first, int64_t rows, int64_t k, int64_t depth, float* dst) {
        PackInterleaved(row, k, depth, first, rows, dst);
      };
}

// pack_b for contiguous rows; row(k) points at B(k, 0).
template <class RowOf>
inline auto PackB(RowOf row) {
  return [row](int64_t k, int64_t depth, int64_t column, int64_t columns,
               float* dst) { PackPanels(row, k, depth, column, columns, dst); };
}

// pack_b for a B that is stored transposed; row(j) points at B(0, j).
template <class RowOf>
inline auto PackBTransposed(RowOf row) {
  return [row](int64_t k, int64_t depth, int64_t column, int64_t columns,
               float* dst) {
    PackPanelsTransposed(row, k, depth, column, columns, dst);
  };
}

// Rows `stride` apart.
inline auto StridedRows(const float* base, int64_t stride) {
  return [base, stride](int64_t i) { return base + i * stride; };
}

// Rows of a table, by index.
inline auto GatheredRows(const float* base, int64_t stride,
                         const int32_t* index) {
  return [base, stride, index](int64_t i) { return base + index[i] * stride; };
}

// `done` for products whose parts need no further work.
inline constexpr auto kNoEpilogue = [](int64_t, int64_t, int64_t, int64_t) {};

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_GEMM_BLOCK_H_
