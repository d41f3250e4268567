// SPDX-License-Identifier: Apache-2.0
//
// A block of threads takes a block of queries of one head, or of its keys, in
// rows of 16 for each matrix of a tensor core, and goes through the other side
// in tiles: forward and for d_q through keys, for d_k and d_v through queries.
// Each result has one writer, which adds in one order: no atomics. Backward
// computes the weights twice for that.
//
// A tile is copied to shared memory while the one before it is worked on.
// Products of a warp's rows with a tile give scores in registers, and these
// become operands of the next product without leaving them. Exponents are those
// of 2, of scores with the factor log2(e)/sqrt(head_dim).
//
// Of a block's rows, those beyond the end of the sequence hold zeros and are
// not stored. Of a tile's rows, keys beyond the end come after every query, and
// queries beyond it have weights of 0.
#include <cmath>
#include <type_traits>

#include "core/errors.h"
#include "kernels/cuda/flash_attention.h"
#include "kernels/cuda/launch.h"
#include "kernels/simt/cuda_groups.h"
#include "kernels/simt/tensor_core.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr float kLog2OfE = 1.44269504f, kLogOf2 = 0.693147181f;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kTileRows = 64;  // of what is gone through
constexpr int kHalf = kTileRows / 2;
// (Two blocks of these threads may have all the registers of a multiprocessor.)

__device__ __forceinline__ int Lane() { return threadIdx.x % 32; }
__device__ __forceinline__ int Warp() { return threadIdx.x / 32; }

// ---- Matrices in shared memory

// Rows of kDim numbers. Eight of them, 16 bytes each at one column, lie in
// different banks: the pieces of row r are exchanged by r % 8.
template <int kDim>
struct Rows {
  static constexpr int kPieces = kDim / 8;
  Bf16x8* data;

  // Where a piece of a row is after `data`, in bytes. From piece q < 2 to piece
  // p + q, p even, it is an exclusive or with 16 p; from row r to r + s, s a
  // multiple of 8, s kBytes more.
  static constexpr int kBytes = kDim * 2;
  __device__ __forceinline__ static int Offset(int row, int piece) {
    return row * kBytes + (piece ^ (row & 7)) * 16;
  }
  __device__ __forceinline__ Bf16x8* At(int row, int piece) const {
    return data + Offset(row, piece) / 16;
  }
};

// The next rows to be copied of a matrix with one row per token of a sequence:
// this thread's piece of them.
template <int kDim>
class Source {
 public:
  // From row `first` on of `count`.
  __device__ __forceinline__ Source(const Bf16* from, int stride, int first,
                                    int count)
      : at_(from + int64_t{first + Begin()} * stride + Piece() * 8),
        stride_(stride),
        left_(count - first - Begin()) {}

  // Begins to copy kCount rows, all threads together; rows that there are not
  // become zeros.
  template <int kCount>
  __device__ __forceinline__ void Copy(Rows<kDim> to) {
    ForEachPiece<kCount>([&](bool exists, int offset) {
      CopyAsync(reinterpret_cast<const Bf16x8*>(at_), exists, to.data, offset);
    });
  }
  // Likewise of two matrices, of which the second lies `distance` further.
  template <int kCount>
  __device__ __forceinline__ void CopyBoth(int distance, Rows<kDim> to,
                                           Rows<kDim> to_second) {
    ForEachPiece<kCount>([&](bool exists, int offset) {
      CopyAsync(reinterpret_cast<const Bf16x8*>(at_), exists, to.data, offset);
      CopyAsync(reinterpret_cast<const Bf16x8*>(at_ + distance), exists,
                to_second.data, offset);
    });
  }

 private:
  static constexpr int kPieces = kDim / 8, kStep = kThreads / kPieces;
  __device__ __forceinline__ static int Piece() {
    return threadIdx.x % kPieces;
  }
  __device__ __forceinline__ static int Begin() {
    return threadIdx.x / kPieces;
  }
  template <int kCount, typename Body>
  __device__ __forceinline__ void ForEachPiece(const Body& body) {
    SOFTMOE_UNROLL
    for (int row = 0; row < kCount; row += kStep) {
      body(row < left_, Rows<kDim>::Offset(Begin() + row, Piece()));
      at_ += kStep * stride_;
    }
    left_ -= kCount;
  }

  const Bf16* at_;
  const int stride_;
  int left_;
};

// ---- Matrices in registers: of a warp, 16 kRowTiles rows

// A thread has every eighth row from LaneRow() on, and of each eight columns
// two neighbours, from LaneColumn() on.
__device__ __forceinline__ int LaneRow() { return Lane() / 4; }
__device__ __forceinline__ int LaneColumn() { return Lane() % 4 * 2; }

// Sums of products: [rows, 8 kColumnTiles]. What a thread has of tile (r, c):
// numbers 2 i and 2 i + 1 are neighbours in row 16 r + 8 i + LaneRow().
template <int kRowTiles, int kColumnTiles>
struct Sums {
  float x[kRowTiles][kColumnTiles][4];

  __device__ __forceinline__ void Clear() {
    SOFTMOE_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      SOFTMOE_UNROLL
      for (int c = 0; c < kColumnTiles; ++c) {
        SOFTMOE_UNROLL
        for (int i = 0; i < 4; ++i) x[r][c][i] = 0;
      }
    }
  }
  // f(number, other's number, own, column): row 8 own + LaneRow(), column
  // `column` + LaneColumn(), so that `own` and `column` are constants. ForEach:
  // without the other's.
  template <typename F>
  __device__ __forceinline__ void ForEachWith(const Sums& other, const F& f) {
    SOFTMOE_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      SOFTMOE_UNROLL
      for (int c = 0; c < kColumnTiles; ++c) {
        SOFTMOE_UNROLL
        for (int i = 0; i < 4; ++i) {
          f(x[r][c][i], other.x[r][c][i], 2 * r + i / 2, 8 * c + i % 2);
        }
      }
    }
  }
  template <typename F>
  __device__ __forceinline__ void ForEach(const F& f) {
    ForEachWith(*this, [&](float& number, float, int own, int column) {
      f(number, own, column);
    });
  }
};

// Left operands, 16 columns at a time: rows of shared memory from `begin` on,
// read again at each use.
template <int kRowTiles, int kDim>
struct SharedOperand {
  Rows<kDim> rows;
  int begin;

  __device__ __forceinline__ void Load(int step,
                                       uint32_t (&a)[kRowTiles][4]) const {
    const int lane = rows.Offset(begin + Lane() % 16, Lane() / 16);
    SOFTMOE_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      LoadMatrices<Transposed::kNo>(
          rows.data, (lane ^ 32 * step) + 16 * r * rows.kBytes, a[r]);
    }
  }
};
// The same, read once.
template <int kRowTiles, int kDim>
struct RegisterOperand {
  uint32_t x[kDim / 16][kRowTiles][4];

  __device__ __forceinline__ explicit RegisterOperand(
      const SharedOperand<kRowTiles, kDim>& from) {
    SOFTMOE_UNROLL
    for (int step = 0; step < kDim / 16; ++step) from.Load(step, x[step]);
  }
  __device__ __forceinline__ void Load(int step,
                                       uint32_t (&a)[kRowTiles][4]) const {
    SOFTMOE_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      SOFTMOE_UNROLL
      for (int i = 0; i < 4; ++i) a[r][i] = x[step][r][i];
    }
  }
};

// sums = left right^T: a column for each row of `right` from `begin` on, a
// multiple of 8.
template <typename Left, int kDim, int kRowTiles, int kColumnTiles>
__device__ __forceinline__ void Compare(const Left& left, Rows<kDim> right,
                                        int begin,
                                        Sums<kRowTiles, kColumnTiles>& sums) {
  sums.Clear();
  const int lane = right.Offset(Lane() / 16 * 8 + Lane() % 8, Lane() / 8 % 2);
  SOFTMOE_UNROLL
  for (int step = 0; step < kDim / 16; ++step) {
    uint32_t a[kRowTiles][4], b[4];
    left.Load(step, a);
    SOFTMOE_UNROLL
    for (int c = 0; c < kColumnTiles; c += 2) {
      LoadMatrices<Transposed::kNo>(
          right.At(begin, 0), (lane ^ 32 * step) + 8 * c * right.kBytes, b);
      SOFTMOE_UNROLL
      for (int r = 0; r < kRowTiles; ++r) {
        MultiplyAdd(a[r], b[0], b[1], sums.x[r][c]);
        MultiplyAdd(a[r], b[2], b[3], sums.x[r][c + 1]);
      }
    }
  }
}

// sums += weights right: weights rounded to bf16; row k of `right`, from
// `begin` on, a multiple of 8, belongs to column k of the weights.
template <int kDim, int kRowTiles, int kColumnTiles>
__device__ __forceinline__ void Mix(
    const Sums<kRowTiles, kColumnTiles>& weights, Rows<kDim> right, int begin,
    Sums<kRowTiles, kDim / 8>& sums) {
  const int lane = right.Offset(Lane() % 16, Lane() / 16);
  SOFTMOE_UNROLL
  for (int step = 0; step < kColumnTiles / 2; ++step) {
    uint32_t a[kRowTiles][4], b[4];
    SOFTMOE_UNROLL
    for (int r = 0; r < kRowTiles; ++r) {
      SOFTMOE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float(&pairs)[4] = weights.x[r][2 * step + i / 2];
        a[r][i] = PackBf16(pairs[i % 2 * 2], pairs[i % 2 * 2 + 1]);
      }
    }
    SOFTMOE_UNROLL
    for (int c = 0; c < kDim / 8; c += 2) {
      LoadMatrices<Transposed::kYes>(
          right.At(begin, 0), (lane ^ 16 * c) + 16 * step * right.kBytes, b);
      SOFTMOE_UNROLL
      for (int r = 0; r < kRowTiles; ++r) {
        MultiplyAdd(a[r], b[0], b[1], sums.x[r][c]);
        MultiplyAdd(a[r], b[2], b[3], sums.x[r][c + 1]);
      }
    }
  }
}

// The sum, and the largest, over the four lanes that share a row.
__device__ __forceinline__ float RowSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float RowMax(float x) {
  x = Larger(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return Larger(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// work(std::true_type) or work(std::false_type): compiled twice, so that most
// tiles do not pay for the mask.
template <typename Work>
__device__ __forceinline__ void ForMasked(bool masked, const Work& work) {
  if (masked) {
    work(std::true_type());
  } else {
    work(std::false_type());
  }
}

// ---- Where a block of threads is, and what it works on

// Which block of rows of which head. Those with most to do come first within a
// head, and the blocks of a head together, since they read the same.
template <int kDim>
struct Place {
  // Rows of a thread, of a warp and of a block of threads.
  static constexpr int kRowTiles = kDim == 64 ? 2 : 1, kOwn = 2 * kRowTiles;
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps * kWarpRows;

  // All heads' numbers of a token, and a sequence's tokens.
  int width, length;
  // The first row of the block, that of the warp, and where it is in the block.
  int first, warp_first, warp_row;
  // The head, counted through all sequences, and where its first token is, from
  // the beginning of arrays.
  int64_t head, qkv, out;

  // Of `blocks` in each head.
  template <typename Args>
  __device__ __forceinline__ Place(const Args& args, int blocks,
                                   bool last_first) {
    const unsigned index = blockIdx.x / static_cast<unsigned>(blocks);
    const unsigned heads = static_cast<unsigned>(args.num_heads);
    const int sequence = static_cast<int>(index / heads);
    const int head_of_sequence = static_cast<int>(index % heads);
    int block = static_cast<int>(blockIdx.x % static_cast<unsigned>(blocks));
    if (last_first) block = blocks - 1 - block;
    width = static_cast<int>(args.num_heads) * kDim;
    length = static_cast<int>(args.sequence_length);
    first = block * kRows;
    warp_row = Warp() * kWarpRows;
    warp_first = first + warp_row;
    head = index;
    const int64_t token = sequence * args.sequence_length;
    out = token * width + head_of_sequence * kDim;
    qkv = 3 * token * width + head_of_sequence * kDim;
  }

  // The head's rows from `begin` on, of an array like qkv and of one like out.
  // In qkv, its keys are `width` after its queries, its values after its keys.
  __device__ __forceinline__ Source<kDim> OfQkv(const Bf16* array,
                                                int begin) const {
    return Source<kDim>(array + qkv, 3 * width, begin, length);
  }
  __device__ __forceinline__ Source<kDim> OfOut(const Bf16* array,
                                                int begin) const {
    return Source<kDim>(array + out, width, begin, length);
  }
  // Tiles of the rows before `end`.
  __device__ __forceinline__ int TilesBefore(int end) const {
    return ((end < length ? end : length) + kTileRows - 1) / kTileRows;
  }
};

// Two matrices of each of two tiles, in shared memory from `data` on: a tile
// takes the place of the last but one.
template <int kDim>
struct Tiles {
  static constexpr int kPieces = kTileRows * Rows<kDim>::kPieces;
  Bf16x8* data;

  __device__ __forceinline__ Rows<kDim> First(int tile) const {
    return {data + (tile & 1) * 2 * kPieces};
  }
  __device__ __forceinline__ Rows<kDim> Second(int tile) const {
    return {First(tile).data + kPieces};
  }
  __device__ __forceinline__ Bf16x8* End() const { return data + 4 * kPieces; }
};

// Bytes of so many matrices of a block's rows, and of Tiles.
template <int kDim>
constexpr int BytesOfMatrices(int of_block) {
  return (of_block * Place<kDim>::kRows + 4 * kTileRows) * kDim * 2;
}

// Tiles of a head's keys and values.
template <int kDim>
class KeyTiles {
 public:
  __device__ __forceinline__ KeyTiles(const Bf16* qkv, const Place<kDim>& here,
                                      Bf16x8* shared)
      : tiles_{shared},
        next_(here.OfQkv(qkv + here.width, 0)),
        distance_(here.width) {}

  __device__ __forceinline__ Rows<kDim> Keys(int tile) const {
    return tiles_.First(tile);
  }
  __device__ __forceinline__ Rows<kDim> Values(int tile) const {
    return tiles_.Second(tile);
  }
  __device__ __forceinline__ Bf16x8* End() const { return tiles_.End(); }
  // Begins to copy a tile; one after the other, from the first on.
  __device__ __forceinline__ void Begin(int tile) {
    next_.template CopyBoth<kTileRows>(distance_, Keys(tile), Values(tile));
    CommitCopies();
  }

 private:
  const Tiles<kDim> tiles_;
  Source<kDim> next_;
  const int distance_;
};

// Stores a warp's sums, rounded, in memory, where the head's first row is `to`.
// They pass through the warp's of `rows`, which no other warp reads. Rows that
// there are not are left out.
template <int kDim>
__device__ __forceinline__ void Store(
    const Sums<Place<kDim>::kRowTiles, kDim / 8>& sums, Rows<kDim> rows,
    const Place<kDim>& here, int64_t stride, Bf16* to) {
  constexpr int kPieces = Rows<kDim>::kPieces, kStep = 32 / kPieces;
  __syncwarp();
  SOFTMOE_UNROLL
  for (int own = 0; own < here.kOwn; ++own) {
    SOFTMOE_UNROLL
    for (int c = 0; c < kDim / 8; ++c) {
      const float* pair = sums.x[own / 2][c] + own % 2 * 2;
      rows.At(here.warp_row + 8 * own + LaneRow(), c)->pairs[Lane() % 4] =
          PackBf16(pair[0], pair[1]);
    }
  }
  __syncwarp();
  const int piece = Lane() % kPieces;
  SOFTMOE_UNROLL
  for (int i = 0; i < here.kWarpRows / kStep; ++i) {
    const int row = i * kStep + Lane() / kPieces;
    if (here.warp_first + row >= here.length) continue;
    *reinterpret_cast<Bf16x8*>(to + int64_t{here.warp_first + row} * stride +
                               piece * 8) =
        *rows.At(here.warp_row + row, piece);
  }
}

// ---- Forward

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2)
    FlashForwardKernel(AttentionForwardArgsOf<Bf16> args, float scale2,
                       int num_blocks) {
  constexpr int kRowTiles = Place<kDim>::kRowTiles, kOwn = Place<kDim>::kOwn;
  const Place<kDim> here(args, num_blocks, /*last_first=*/true);

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> queries{shared};
  KeyTiles<kDim> tiles(args.qkv, here, queries.At(here.kRows, 0));
  const int num_tiles = here.TilesBefore(here.first + here.kRows);
  here.OfQkv(args.qkv, here.first).template Copy<here.kRows>(queries);
  tiles.Begin(0);

  const SharedOperand<kRowTiles, kDim> q{queries, here.warp_row};
  Sums<kRowTiles, kDim / 8> out;
  out.Clear();
  // Of each row: the largest score so far, and the sum of the weights that this
  // thread has, relative to it.
  float largest[kOwn], total[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    largest[own] = -__builtin_inff();
    total[own] = 0;
  }

  for (int tile = 0; tile < num_tiles; ++tile) {
    WaitForCopies<0>();
    __syncthreads();
    // Nobody reads the tile before this one any more.
    if (tile + 1 < num_tiles) tiles.Begin(tile + 1);
    const int first_key = tile * kTileRows;
    if (first_key > here.warp_first + here.kWarpRows - 1) continue;
    ForMasked(first_key + kTileRows - 1 > here.warp_first, [&](auto masked) {
      Sums<kRowTiles, kTileRows / 8> weights;
      Compare(q, tiles.Keys(tile), 0, weights);
      if constexpr (decltype(masked)::value) {
        const int beyond =
            here.warp_first + LaneRow() - (first_key + LaneColumn());
        weights.ForEach([&](float& score, int own, int column) {
          if (column - 8 * own > beyond) score = -__builtin_inff();
        });
      }
      float high[kOwn], shift[kOwn], shrink[kOwn];
      SOFTMOE_UNROLL
      for (int own = 0; own < kOwn; ++own) high[own] = largest[own];
      weights.ForEach([&](const float& score, int own, int) {
        high[own] = Larger(high[own], score);
      });
      SOFTMOE_UNROLL
      for (int own = 0; own < kOwn; ++own) {
        high[own] = RowMax(high[own]);
        shift[own] = high[own] * scale2;
        shrink[own] = FastExp2(largest[own] * scale2 - shift[own]);
        largest[own] = high[own];
        total[own] *= shrink[own];
      }
      out.ForEach([&](float& sum, int own, int) { sum *= shrink[own]; });
      weights.ForEach([&](float& x, int own, int) {
        x = FastExp2(Fma(x, scale2, -shift[own]));
        total[own] += x;
      });
      Mix(weights, tiles.Values(tile), 0, out);
    });
  }

  float factor[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    const float sum = RowSum(total[own]);
    factor[own] = 1.0f / sum;
    const int query = here.warp_first + 8 * own + LaneRow();
    if (query < here.length && Lane() % 4 == 0) {
      args.log_sum_exp[here.head * args.sequence_length + query] =
          Fma(largest[own] * scale2, kLogOf2, Log(sum));
    }
  }
  out.ForEach([&](float& sum, int own, int) { sum *= factor[own]; });
  Store(out, queries, here, here.width, args.out + here.out);
}

// ---- Backward: d_q, and <d_out, out> of every row

// What backward needs of each query of a head, in scratch: log-sum-exp to base
// 2, and delta = <d_out, out>. Rows beyond the end of the sequence have what
// makes all weights, and their gradients, 0. [tiles, 2, kTileRows]
__device__ __forceinline__ float* RowNumbers(
    const AttentionBackwardArgsOf<Bf16>& args, int64_t head, int64_t rows) {
  return args.scratch + head * 2 * rows;
}

// Those of a block's queries, to scratch and to shared memory; all threads
// together.
template <int kDim>
__device__ __forceinline__ void FindRowNumbers(
    const AttentionBackwardArgsOf<Bf16>& args, const Place<kDim>& here,
    float* numbers, float* shifts, float* deltas) {
  constexpr int kPieces = Rows<kDim>::kPieces, kStep = kThreads / kPieces;
  const int piece = threadIdx.x % kPieces;
  for (int i = 0; i < here.kRows / kStep; ++i) {
    const int row = i * kStep + threadIdx.x / kPieces;
    const int query = here.first + row;
    const bool exists = query < args.sequence_length;
    float delta = 0;
    if (exists) {
      const int64_t at = here.out + int64_t{query} * here.width + piece * 8;
      const Bf16x8 out = *reinterpret_cast<const Bf16x8*>(args.out + at);
      const Bf16x8 d_out = *reinterpret_cast<const Bf16x8*>(args.d_out + at);
      SOFTMOE_UNROLL
      for (int j = 0; j < 4; ++j) {
        delta = Fma(FirstOf(out.pairs[j]), FirstOf(d_out.pairs[j]), delta);
        delta = Fma(SecondOf(out.pairs[j]), SecondOf(d_out.pairs[j]), delta);
      }
    }
    SOFTMOE_UNROLL
    for (int mask = kPieces / 2; mask > 0; mask /= 2) {
      delta += __shfl_xor_sync(0xffffffffu, delta, mask);
    }
    if (piece != 0) continue;
    const float shift =
        exists ? args.log_sum_exp[here.head * args.sequence_length + query] *
                     kLog2OfE
               : __builtin_inff();
    float* const to = numbers + query / kTileRows * 2 * kTileRows;
    shifts[row] = to[query % kTileRows] = shift;
    deltas[row] = to[kTileRows + query % kTileRows] = delta;
  }
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2)
    FlashQueriesBackwardKernel(AttentionBackwardArgsOf<Bf16> args, float scale,
                               float scale2, int num_blocks, int64_t rows) {
  constexpr int kRowTiles = Place<kDim>::kRowTiles, kOwn = Place<kDim>::kOwn;
  const Place<kDim> here(args, num_blocks, /*last_first=*/true);

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> queries{shared};
  const Rows<kDim> d_outs{queries.At(here.kRows, 0)};
  KeyTiles<kDim> tiles(args.qkv, here, d_outs.At(here.kRows, 0));
  float* const shifts = reinterpret_cast<float*>(tiles.End());
  float* const deltas = shifts + here.kRows;
  const int num_tiles = here.TilesBefore(here.first + here.kRows);
  here.OfQkv(args.qkv, here.first).template Copy<here.kRows>(queries);
  here.OfOut(args.d_out, here.first).template Copy<here.kRows>(d_outs);
  tiles.Begin(0);
  FindRowNumbers(args, here, RowNumbers(args, here.head, rows), shifts, deltas);
  WaitForCopies<0>();
  __syncthreads();
  if (num_tiles > 1) tiles.Begin(1);

  using Operand = RegisterOperand<kRowTiles, kDim>;
  const Operand q({queries, here.warp_row}), d_out({d_outs, here.warp_row});
  float shift[kOwn], delta[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    shift[own] = shifts[here.warp_row + 8 * own + LaneRow()];
    delta[own] = deltas[here.warp_row + 8 * own + LaneRow()];
  }
  Sums<kRowTiles, kDim / 8> d_q;
  d_q.Clear();

  for (int tile = 0; tile < num_tiles; ++tile) {
    if (tile > 0) {
      WaitForCopies<0>();
      __syncthreads();
      if (tile + 1 < num_tiles) tiles.Begin(tile + 1);
    }
    for (int begin = 0; begin < kTileRows; begin += kHalf) {
      const int first_key = tile * kTileRows + begin;
      if (first_key > here.warp_first + here.kWarpRows - 1) continue;
      ForMasked(first_key + kHalf - 1 > here.warp_first, [&](auto masked) {
        Sums<kRowTiles, kHalf / 8> weights, d_scores;
        Compare(q, tiles.Keys(tile), begin, weights);
        Compare(d_out, tiles.Values(tile), begin, d_scores);
        weights.ForEach([&](float& x, int own, int) {
          x = FastExp2(Fma(x, scale2, -shift[own]));
        });
        if constexpr (decltype(masked)::value) {
          const int beyond =
              here.warp_first + LaneRow() - (first_key + LaneColumn());
          weights.ForEach([&](float& weight, int own, int column) {
            if (column - 8 * own > beyond) weight = 0;
          });
        }
        d_scores.ForEachWith(weights,
                             [&](float& x, float weight, int own, int) {
                               x = weight * (x - delta[own]);
                             });
        Mix(d_scores, tiles.Keys(tile), begin, d_q);
      });
    }
  }

  d_q.ForEach([&](float& sum, int, int) { sum *= scale; });
  Store(d_q, queries, here, 3 * here.width, args.d_qkv + here.qkv);
}

// ---- Backward: d_k and d_v

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2)
    FlashKeysBackwardKernel(AttentionBackwardArgsOf<Bf16> args, float scale,
                            float scale2, int num_blocks, int64_t rows) {
  constexpr int kRowTiles = Place<kDim>::kRowTiles;
  const Place<kDim> here(args, num_blocks, /*last_first=*/false);

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> keys{shared};
  const Rows<kDim> values{keys.At(here.kRows, 0)};
  const Tiles<kDim> tiles{values.At(here.kRows, 0)};
  const auto queries = [&](int tile) { return tiles.First(tile); };
  const auto d_outs = [&](int tile) { return tiles.Second(tile); };
  // Of a tile: the first number of each query, then the second of each.
  const auto numbers = [&](int tile) {
    return tiles.End() + (tile & 1) * 2 * kTileRows / 4;
  };
  // What this thread copies of them next, from the beginning of scratch.
  int next_number =
      static_cast<int>(RowNumbers(args, here.head, rows) - args.scratch) +
      2 * here.first + threadIdx.x * 4;
  // For the end; until then in no register, of which none is left.
  int64_t* const head_begins =
      reinterpret_cast<int64_t*>(numbers(0) + 2 * 2 * kTileRows / 4);
  if (threadIdx.x == 0) *head_begins = here.qkv;
  Source<kDim> from_queries = here.OfQkv(args.qkv, here.first),
               from_d_outs = here.OfOut(args.d_out, here.first);
  const auto begin_tile = [&](int tile) {
    from_queries.template Copy<kTileRows>(queries(tile));
    from_d_outs.template Copy<kTileRows>(d_outs(tile));
    if (threadIdx.x < 2 * kTileRows / 4) {
      CopyAsync(reinterpret_cast<const Bf16x8*>(args.scratch + next_number),
                true, numbers(tile), threadIdx.x * 16);
      next_number += 2 * kTileRows;
    }
    CommitCopies();
  };
  const int first_tile = here.first / kTileRows;
  const int num_tiles = here.TilesBefore(here.length);
  here.OfQkv(args.qkv + here.width, here.first)
      .template CopyBoth<here.kRows>(here.width, keys, values);
  begin_tile(first_tile);

  const SharedOperand<kRowTiles, kDim> k{keys, here.warp_row},
      v{values, here.warp_row};
  Sums<kRowTiles, kDim / 8> d_k, d_v;
  d_k.Clear();
  d_v.Clear();

  for (int tile = first_tile; tile < num_tiles; ++tile) {
    WaitForCopies<0>();
    __syncthreads();
    // Nobody reads the tile before this one any more.
    if (tile + 1 < num_tiles) begin_tile(tile + 1);
    for (int begin = 0; begin < kTileRows; begin += kHalf) {
      const int first_query = tile * kTileRows + begin;
      if (first_query + kHalf - 1 < here.warp_first) continue;
      const float* const shifts =
          reinterpret_cast<const float*>(numbers(tile)) + begin + LaneColumn();
      const float* const deltas = shifts + kTileRows;
      // One row for each key, one column for each query. (Two bodies, as above,
      // would need more registers than there are.)
      Sums<kRowTiles, kHalf / 8> weights, d_scores;
      Compare(k, queries(tile), begin, weights);
      const int before =
          here.warp_first + LaneRow() - (first_query + LaneColumn());
      weights.ForEach([&](float& x, int own, int column) {
        x = FastExp2(Fma(x, scale2, -shifts[column]));
        if (column - 8 * own < before) x = 0;
      });
      Compare(v, d_outs(tile), begin, d_scores);
      Mix(weights, d_outs(tile), begin, d_v);
      d_scores.ForEachWith(weights,
                           [&](float& x, float weight, int, int column) {
                             x = weight * (x - deltas[column]);
                           });
      Mix(d_scores, queries(tile), begin, d_k);
    }
  }

  d_k.ForEach([&](float& sum, int, int) { sum *= scale; });
  Bf16* const d_keys = args.d_qkv + *head_begins + here.width;
  Store(d_k, keys, here, 3 * here.width, d_keys);
  Store(d_v, values, here, 3 * here.width, d_keys + here.width);
}

// ---- Launches

template <typename Args>
float Scale(const Args& args) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(args.head_dim)));
}
template <typename Args>
float ScaleTo2(const Args& args) {
  return static_cast<float>(1.4426950408889634 /
                            std::sqrt(static_cast<double>(args.head_dim)));
}

template <int kDim, typename Args>
int BlocksOfHead(const Args& args) {
  return static_cast<int>(Blocks(args.sequence_length, Place<kDim>::kRows));
}

template <int kDim>
void Forward(const AttentionForwardArgsOf<Bf16>& args, Queue& queue) {
  const int blocks = BlocksOfHead<kDim>(args);
  Launch("AttentionForward", FlashForwardKernel<kDim>,
         args.num_sequences * args.num_heads * blocks, kThreads,
         BytesOfMatrices<kDim>(1), queue.stream(), args, ScaleTo2(args),
         blocks);
}

template <int kDim>
void Backward(const AttentionBackwardArgsOf<Bf16>& args, Queue& queue) {
  const int64_t heads = args.num_sequences * args.num_heads;
  const int64_t rows = FlashAttentionRows(args.sequence_length);
  if (heads * 2 * rows >= int64_t{1} << 31) {
    throw InternalError("attention of too many queries at a time");
  }
  const int blocks = BlocksOfHead<kDim>(args);
  const auto launch = [&](const char* what, auto* kernel, int numbers) {
    Launch(what, kernel, heads * blocks, kThreads,
           BytesOfMatrices<kDim>(2) + numbers, queue.stream(), args,
           Scale(args), ScaleTo2(args), blocks, rows);
  };
  // Two numbers for each query; for each of two tiles, and where a head begins.
  launch("AttentionBackward, of queries", FlashQueriesBackwardKernel<kDim>,
         2 * Place<kDim>::kRows * 4);
  launch("AttentionBackward, of keys and values", FlashKeysBackwardKernel<kDim>,
         2 * 2 * kTileRows * 4 + 16);
}

// run(kDim) for the head_dim of the arguments.
template <typename Args, typename Run>
void WithHeadDim(const Args& args, const Run& run) {
  if (args.head_dim == 64) {
    run(std::integral_constant<int, 64>());
  } else if (args.head_dim == 128) {
    run(std::integral_constant<int, 128>());
  } else {
    throw InternalError("no flash attention for this head_dim");
  }
}

}  // namespace

void FlashAttentionForward(const AttentionForwardArgsOf<Bf16>& args,
                           Queue& queue) {
  WithHeadDim(args,
              [&](auto dim) { Forward<decltype(dim)::value>(args, queue); });
}

void FlashAttentionBackward(const AttentionBackwardArgsOf<Bf16>& args,
                            Queue& queue) {
  WithHeadDim(args,
              [&](auto dim) { Backward<decltype(dim)::value>(args, queue); });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
