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

// Stores kCount rows from `begin` on, in shared memory, as rows `first` and so
// on in memory; one warp. Rows that there are not are left out.
template <int kCount, int kDim>
__device__ __forceinline__ void StoreRows(Rows<kDim> rows, int begin, int first,
                                          int64_t stride, int count, Bf16* to) {
  constexpr int kPieces = kDim / 8, kStep = 32 / kPieces;
  const int piece = Lane() % kPieces;
  SOFTMOE_UNROLL
  for (int i = 0; i < kCount / kStep; ++i) {
    const int row = i * kStep + Lane() / kPieces;
    if (first + row >= count) continue;
    *reinterpret_cast<Bf16x8*>(to + int64_t{first + row} * stride + piece * 8) =
        *rows.At(begin + row, piece);
  }
}

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

// Puts factor[own row] * sums, rounded, where rows of shared memory were that
// no other warp reads, from `begin` on.
template <int kDim, int kRowTiles>
__device__ __forceinline__ void PutRows(const Sums<kRowTiles, kDim / 8>& sums,
                                        const float (&factor)[2 * kRowTiles],
                                        Rows<kDim> rows, int begin) {
  __syncwarp();
  SOFTMOE_UNROLL
  for (int own = 0; own < 2 * kRowTiles; ++own) {
    SOFTMOE_UNROLL
    for (int c = 0; c < kDim / 8; ++c) {
      const float* pair = sums.x[own / 2][c] + own % 2 * 2;
      rows.At(begin + 8 * own + LaneRow(), c)->pairs[Lane() % 4] =
          PackBf16(factor[own] * pair[0], factor[own] * pair[1]);
    }
  }
  __syncwarp();
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

// ---- Where a block of threads is

// Which block of rows of which head. Those with most to do come first within a
// head, and the blocks of a head together, since they read the same.
struct Place {
  int sequence, head, block;

  // Of `blocks` in each head.
  __device__ __forceinline__ Place(int64_t num_heads, int blocks,
                                   bool last_first) {
    const unsigned index = blockIdx.x / static_cast<unsigned>(blocks);
    sequence = static_cast<int>(index / static_cast<unsigned>(num_heads));
    head = static_cast<int>(index % static_cast<unsigned>(num_heads));
    block = static_cast<int>(blockIdx.x % static_cast<unsigned>(blocks));
    if (last_first) block = blocks - 1 - block;
  }
};

// Tiles of the keys that queries before `end` see.
__device__ __forceinline__ int TilesSeen(int length, int end) {
  return ((end < length ? end : length) + kTileRows - 1) / kTileRows;
}

// Where a head's first token of a sequence is, from the beginning of arrays.
template <int kDim>
struct HeadOf {
  int width;
  int64_t qkv, out, log_sum_exp;

  template <typename Args>
  __device__ __forceinline__ HeadOf(const Args& args, const Place& place) {
    width = static_cast<int>(args.num_heads) * kDim;
    const int64_t token = place.sequence * args.sequence_length;
    out = token * width + place.head * kDim;
    qkv = 3 * token * width + place.head * kDim;
    log_sum_exp =
        (place.sequence * args.num_heads + place.head) * args.sequence_length;
  }
};

// ---- Forward

template <int kDim>
struct ForwardSizes {
  static constexpr int kRowTiles = kDim == 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kRowTiles;
  static constexpr int kQueries = kWarps * kWarpRows;
  // Queries, and keys and values of two tiles.
  static constexpr int kShared = (kQueries + 4 * kTileRows) * kDim * 2;
};

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2)
    FlashForwardKernel(AttentionForwardArgsOf<Bf16> args, float scale2,
                       int num_blocks) {
  using Sizes = ForwardSizes<kDim>;
  constexpr int kRowTiles = Sizes::kRowTiles, kOwn = 2 * kRowTiles;
  const Place place(args.num_heads, num_blocks, /*last_first=*/true);
  const HeadOf<kDim> head(args, place);
  const int length = static_cast<int>(args.sequence_length);
  const int first = place.block * Sizes::kQueries;
  const int warp_first = first + Warp() * Sizes::kWarpRows;

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> queries{shared};
  const auto keys = [&](int tile) {
    return Rows<kDim>{queries.At(Sizes::kQueries, 0) +
                      (tile & 1) * 2 * kTileRows * Rows<kDim>::kPieces};
  };
  const auto values = [&](int tile) {
    return Rows<kDim>{keys(tile).data + kTileRows * Rows<kDim>::kPieces};
  };
  Source<kDim> keys_and_values(args.qkv + head.qkv + head.width, 3 * head.width,
                               0, length);
  const auto begin_tile = [&](int tile) {
    keys_and_values.template CopyBoth<kTileRows>(head.width, keys(tile),
                                                 values(tile));
    CommitCopies();
  };
  const int num_tiles = TilesSeen(length, first + Sizes::kQueries);
  Source<kDim>(args.qkv + head.qkv, 3 * head.width, first, length)
      .template Copy<Sizes::kQueries>(queries);
  begin_tile(0);

  const SharedOperand<kRowTiles, kDim> q{queries, Warp() * Sizes::kWarpRows};
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
    if (tile + 1 < num_tiles) begin_tile(tile + 1);
    const int first_key = tile * kTileRows;
    if (first_key > warp_first + Sizes::kWarpRows - 1) continue;
    ForMasked(first_key + kTileRows - 1 > warp_first, [&](auto masked) {
      Sums<kRowTiles, kTileRows / 8> weights;
      Compare(q, keys(tile), 0, weights);
      if constexpr (decltype(masked)::value) {
        const int beyond = warp_first + LaneRow() - (first_key + LaneColumn());
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
      Mix(weights, values(tile), 0, out);
    });
  }

  float factor[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    const float sum = RowSum(total[own]);
    factor[own] = 1.0f / sum;
    const int query = warp_first + 8 * own + LaneRow();
    if (query < length && Lane() % 4 == 0) {
      args.log_sum_exp[head.log_sum_exp + query] =
          Fma(largest[own] * scale2, kLogOf2, Log(sum));
    }
  }
  const int begin = Warp() * Sizes::kWarpRows;
  PutRows(out, factor, queries, begin);
  StoreRows<Sizes::kWarpRows>(queries, begin, warp_first, head.width, length,
                              args.out + head.out);
}

// ---- Backward: d_q, and <d_out, out> of every row

template <int kDim>
struct QueriesSizes {
  static constexpr int kRowTiles = kDim == 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kRowTiles;
  static constexpr int kQueries = kWarps * kWarpRows;
  // Queries and d_out, keys and values of two tiles, and a query's two numbers.
  static constexpr int kShared =
      (2 * kQueries + 4 * kTileRows) * kDim * 2 + 2 * kQueries * 4;
};

// What backward needs of each query of a head, in scratch: log-sum-exp to base
// 2, and delta = <d_out, out>. Rows beyond the end of the sequence have what
// makes all weights, and their gradients, 0. [tiles, 2, kTileRows]
__device__ __forceinline__ float* RowNumbers(
    const AttentionBackwardArgsOf<Bf16>& args, const Place& place,
    int64_t rows) {
  return args.scratch +
         (place.sequence * args.num_heads + place.head) * 2 * rows;
}

// Those of kCount rows from `first` on, to scratch and to shared memory; all
// threads together.
template <int kCount, int kDim>
__device__ __forceinline__ void FindRowNumbers(
    const AttentionBackwardArgsOf<Bf16>& args, const HeadOf<kDim>& head,
    int first, float* numbers, float* shifts, float* deltas) {
  constexpr int kPieces = kDim / 8, kStep = kThreads / kPieces;
  const int piece = threadIdx.x % kPieces;
  for (int i = 0; i < kCount / kStep; ++i) {
    const int row = i * kStep + threadIdx.x / kPieces;
    const int query = first + row;
    const bool exists = query < args.sequence_length;
    float delta = 0;
    if (exists) {
      const int64_t at = head.out + int64_t{query} * head.width + piece * 8;
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
        exists ? args.log_sum_exp[head.log_sum_exp + query] * kLog2OfE
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
  using Sizes = QueriesSizes<kDim>;
  constexpr int kRowTiles = Sizes::kRowTiles, kOwn = 2 * kRowTiles;
  const Place place(args.num_heads, num_blocks, /*last_first=*/true);
  const HeadOf<kDim> head(args, place);
  const int length = static_cast<int>(args.sequence_length);
  const int first = place.block * Sizes::kQueries;
  const int warp_row = Warp() * Sizes::kWarpRows;
  const int warp_first = first + warp_row;

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> queries{shared};
  const Rows<kDim> d_outs{queries.At(Sizes::kQueries, 0)};
  const auto keys = [&](int tile) {
    return Rows<kDim>{d_outs.At(Sizes::kQueries, 0) +
                      (tile & 1) * 2 * kTileRows * Rows<kDim>::kPieces};
  };
  const auto values = [&](int tile) {
    return Rows<kDim>{keys(tile).data + kTileRows * Rows<kDim>::kPieces};
  };
  float* const shifts = reinterpret_cast<float*>(
      values(1).data + kTileRows * Rows<kDim>::kPieces);
  float* const deltas = shifts + Sizes::kQueries;
  Source<kDim> keys_and_values(args.qkv + head.qkv + head.width, 3 * head.width,
                               0, length);
  const auto begin_tile = [&](int tile) {
    keys_and_values.template CopyBoth<kTileRows>(head.width, keys(tile),
                                                 values(tile));
    CommitCopies();
  };
  const int num_tiles = TilesSeen(length, first + Sizes::kQueries);
  Source<kDim>(args.qkv + head.qkv, 3 * head.width, first, length)
      .template Copy<Sizes::kQueries>(queries);
  Source<kDim>(args.d_out + head.out, head.width, first, length)
      .template Copy<Sizes::kQueries>(d_outs);
  begin_tile(0);
  FindRowNumbers<Sizes::kQueries, kDim>(
      args, head, first, RowNumbers(args, place, rows), shifts, deltas);
  WaitForCopies<0>();
  __syncthreads();
  if (num_tiles > 1) begin_tile(1);

  using Operand = RegisterOperand<kRowTiles, kDim>;
  const Operand q({queries, warp_row}), d_out({d_outs, warp_row});
  float shift[kOwn], delta[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    shift[own] = shifts[warp_row + 8 * own + LaneRow()];
    delta[own] = deltas[warp_row + 8 * own + LaneRow()];
  }
  Sums<kRowTiles, kDim / 8> d_q;
  d_q.Clear();

  for (int tile = 0; tile < num_tiles; ++tile) {
    if (tile > 0) {
      WaitForCopies<0>();
      __syncthreads();
      if (tile + 1 < num_tiles) begin_tile(tile + 1);
    }
    for (int begin = 0; begin < kTileRows; begin += kHalf) {
      const int first_key = tile * kTileRows + begin;
      if (first_key > warp_first + Sizes::kWarpRows - 1) continue;
      ForMasked(first_key + kHalf - 1 > warp_first, [&](auto masked) {
        Sums<kRowTiles, kHalf / 8> weights, d_scores;
        Compare(q, keys(tile), begin, weights);
        Compare(d_out, values(tile), begin, d_scores);
        weights.ForEach([&](float& x, int own, int) {
          x = FastExp2(Fma(x, scale2, -shift[own]));
        });
        if constexpr (decltype(masked)::value) {
          const int beyond =
              warp_first + LaneRow() - (first_key + LaneColumn());
          weights.ForEach([&](float& weight, int own, int column) {
            if (column - 8 * own > beyond) weight = 0;
          });
        }
        d_scores.ForEachWith(weights,
                             [&](float& x, float weight, int own, int) {
                               x = weight * (x - delta[own]);
                             });
        Mix(d_scores, keys(tile), begin, d_q);
      });
    }
  }

  float factor[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) factor[own] = scale;
  PutRows(d_q, factor, queries, warp_row);
  StoreRows<Sizes::kWarpRows>(queries, warp_row, warp_first, 3 * head.width,
                              length, args.d_qkv + head.qkv);
}

// ---- Backward: d_k and d_v

template <int kDim>
struct KeysSizes {
  static constexpr int kRowTiles = kDim == 64 ? 2 : 1;
  static constexpr int kWarpRows = 16 * kRowTiles;
  static constexpr int kKeys = kWarps * kWarpRows;
  // Keys and values, queries and d_out of two tiles, two numbers for each of
  // these queries, and where the head begins.
  static constexpr int kShared =
      (2 * kKeys + 4 * kTileRows) * kDim * 2 + 2 * 2 * kTileRows * 4 + 16;
};

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2)
    FlashKeysBackwardKernel(AttentionBackwardArgsOf<Bf16> args, float scale,
                            float scale2, int num_blocks, int64_t rows) {
  using Sizes = KeysSizes<kDim>;
  constexpr int kRowTiles = Sizes::kRowTiles, kOwn = 2 * kRowTiles;
  const Place place(args.num_heads, num_blocks, /*last_first=*/false);
  const HeadOf<kDim> head(args, place);
  const int length = static_cast<int>(args.sequence_length);
  const int first = place.block * Sizes::kKeys;
  const int warp_row = Warp() * Sizes::kWarpRows;
  const int warp_first = first + warp_row;

  SOFTMOE_DYNAMIC_SHARED(Bf16x8, shared);
  const Rows<kDim> keys{shared};
  const Rows<kDim> values{keys.At(Sizes::kKeys, 0)};
  const auto queries = [&](int tile) {
    return Rows<kDim>{values.At(Sizes::kKeys, 0) +
                      (tile & 1) * 2 * kTileRows * Rows<kDim>::kPieces};
  };
  const auto d_outs = [&](int tile) {
    return Rows<kDim>{queries(tile).data + kTileRows * Rows<kDim>::kPieces};
  };
  // Of a tile: the first number of each query, then the second of each.
  const auto numbers = [&](int tile) {
    return d_outs(1).data + kTileRows * Rows<kDim>::kPieces +
           (tile & 1) * 2 * kTileRows / 4;
  };
  // What this thread copies of them next, from the beginning of scratch.
  int next_number =
      static_cast<int>(RowNumbers(args, place, rows) - args.scratch) +
      2 * first + threadIdx.x * 4;
  // For the end; until then in no register, of which none is left.
  int64_t* const head_begins =
      reinterpret_cast<int64_t*>(numbers(0) + 2 * 2 * kTileRows / 4);
  if (threadIdx.x == 0) *head_begins = head.qkv;
  Source<kDim> from_queries(args.qkv + head.qkv, 3 * head.width, first, length),
      from_d_outs(args.d_out + head.out, head.width, first, length);
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
  const int first_tile = first / kTileRows;
  const int num_tiles = (length + kTileRows - 1) / kTileRows;
  Source<kDim>(args.qkv + head.qkv + head.width, 3 * head.width, first, length)
      .template CopyBoth<Sizes::kKeys>(head.width, keys, values);
  begin_tile(first_tile);

  const SharedOperand<kRowTiles, kDim> k{keys, warp_row}, v{values, warp_row};
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
      if (first_query + kHalf - 1 < warp_first) continue;
      const float* const shifts =
          reinterpret_cast<const float*>(numbers(tile)) + begin + LaneColumn();
      const float* const deltas = shifts + kTileRows;
      // One row for each key, one column for each query. (Two bodies, as above,
      // would need more registers than there are.)
      Sums<kRowTiles, kHalf / 8> weights, d_scores;
      Compare(k, queries(tile), begin, weights);
      const int before = warp_first + LaneRow() - (first_query + LaneColumn());
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

  float factor[kOwn], one[kOwn];
  SOFTMOE_UNROLL
  for (int own = 0; own < kOwn; ++own) {
    factor[own] = scale;
    one[own] = 1;
  }
  Bf16* const d_keys = args.d_qkv + *head_begins + head.width;
  PutRows(d_k, factor, keys, warp_row);
  StoreRows<Sizes::kWarpRows>(keys, warp_row, warp_first, 3 * head.width,
                              length, d_keys);
  PutRows(d_v, one, values, warp_row);
  StoreRows<Sizes::kWarpRows>(values, warp_row, warp_first, 3 * head.width,
                              length, d_keys + head.width);
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

template <typename Args>
int BlocksOfHead(const Args& args, int rows) {
  return static_cast<int>(Blocks(args.sequence_length, rows));
}

template <int kDim>
void Forward(const AttentionForwardArgsOf<Bf16>& args, Queue& queue) {
  using Sizes = ForwardSizes<kDim>;
  const int blocks = BlocksOfHead(args, Sizes::kQueries);
  Launch("AttentionForward", FlashForwardKernel<kDim>,
         args.num_sequences * args.num_heads * blocks, kThreads, Sizes::kShared,
         queue.stream(), args, ScaleTo2(args), blocks);
}

template <int kDim>
void Backward(const AttentionBackwardArgsOf<Bf16>& args, Queue& queue) {
  const int64_t heads = args.num_sequences * args.num_heads;
  const int64_t rows = FlashAttentionRows(args.sequence_length);
  if (heads * 2 * rows >= int64_t{1} << 31) {
    throw InternalError("attention of too many queries at a time");
  }
  using OfQueries = QueriesSizes<kDim>;
  const int query_blocks = BlocksOfHead(args, OfQueries::kQueries);
  Launch("AttentionBackward", FlashQueriesBackwardKernel<kDim>,
         heads * query_blocks, kThreads, OfQueries::kShared, queue.stream(),
         args, Scale(args), ScaleTo2(args), query_blocks, rows);
  using OfKeys = KeysSizes<kDim>;
  const int key_blocks = BlocksOfHead(args, OfKeys::kKeys);
  Launch("AttentionBackward", FlashKeysBackwardKernel<kDim>, heads * key_blocks,
         kThreads, OfKeys::kShared, queue.stream(), args, Scale(args),
         ScaleTo2(args), key_blocks, rows);
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
