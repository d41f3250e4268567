// SPDX-License-Identifier: Apache-2.0
//
// The calling program's threads each compute one block of C. How C is cut
// depends on the number of threads; the bits do not (gemm_tile.h).
#include "kernels/gemm.h"

#include "kernels/gemm_block.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

struct Split {
  int64_t rows, columns;  // parts of C's rows and of its columns
};

// The cut into at most `threads` blocks with the least estimated time of the
// slowest block. Packing an element costs as much as `kPack` multiply-adds.
Split ChooseSplit(const GemmArgs& args, int64_t threads) {
  constexpr int64_t kPack = 8;
  const int64_t panels = CeilDiv(args.n, kTileColumns);
  const int64_t useful = CeilDiv(args.m * args.n * args.k, kMinWork);
  threads = Larger(1, Smaller(threads, useful));
  Split best{1, 1};
  int64_t best_cost = -1;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    const int64_t columns = threads / rows;
    const int64_t m = CeilDiv(args.m, rows);
    const int64_t n = CeilDiv(panels, columns) * kTileColumns;
    const int64_t cost = m * n + kPack * (m + n);
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best = {rows, columns};
    }
  }
  return best;
}

template <TileA kLayout, class PackA, class PackB>
void Multiply(const GemmArgs& args, ThreadPool& pool, PackA pack_a,
              PackB pack_b) {
  const Split split = ChooseSplit(args, pool.threads());
  pool.ParallelFor(split.rows * split.columns, [&](int64_t i) {
    const CBlock block{
        Piece(args.m, split.rows, i % split.rows),
        Piece(args.n, split.columns, i / split.rows, kTileColumns),
        args.k,
        args.c,
        args.ldc,
        args.accumulate};
    float* scratch =
        ThreadScratch(ScratchSlot::kTask, BlockScratch(args.k, args.n));
    MultiplyBlock<kLayout>(block, scratch, pack_a, pack_b, kNoEpilogue);
  });
}

template <TileA kLayout, class PackA>
void Multiply(const GemmArgs& args, ThreadPool& pool, PackA pack_a) {
  const auto b = StridedRows(args.b, args.ldb);
  if (args.transpose_b) {
    Multiply<kLayout>(args, pool, pack_a, PackBTransposed(b));
  } else {
    Multiply<kLayout>(args, pool, pack_a, PackB(b));
  }
}

}  // namespace

void Gemm(const GemmArgs& args, ThreadPool& pool) {
  const auto a = StridedRows(args.a, args.lda);
  if (args.transpose_a) {
    Multiply<TileA::kInterleaved>(args, pool, PackColumns(a));
  } else {
    Multiply<TileA::kRowMajor>(args, pool, PackRows(a));
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
