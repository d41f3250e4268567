// SPDX-License-Identifier: Apache-2.0
//
// Per (sequence, head), tiles of queries against blocks of keys with a running
// softmax. K^T and V (backward: also K and V^T) of the head are packed once
// into panels for the tile kernels of gemm_tile.h. Panels of keys that lie
// wholly after a tile's last query are not computed.
//
// A query's result depends on its own row only: sums over keys run in ascending
// order in blocks of kKeys, whichever tile the query is in, so cutting the work
// differently does not change a bit.
#include "kernels/attention.h"

#include "kernels/gemm_block.h"
#include "kernels/softmax_row.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Keys per step of the running softmax: 12 rows of scores take 24 KiB.
constexpr int64_t kKeys = 512;
constexpr int64_t kScoreStride = kKeys + 16;

// Queries and keys per step of the backward pass (two blocks of 68 KiB).
constexpr int64_t kBackwardQueries = 64;
constexpr int64_t kBackwardKeys = 256;
constexpr int64_t kBackwardStride = kBackwardKeys + 16;

struct Shape {
  int64_t length, num_heads, head_dim;
  int64_t width() const { return num_heads * head_dim; }
  int64_t qkv_stride() const { return 3 * width(); }
  float scale() const {
    return 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  }
};

// A packed matrix [depth, columns] for MultiplyTile.
struct Panels {
  float* data;
  int64_t depth;

  static int64_t Size(int64_t depth, int64_t columns) {
    return AlignedFloats(PanelStride(depth) * CeilDiv(columns, kTileColumns));
  }
  const float* At(int64_t row, int64_t column) const {
    return data + column / kTileColumns * PanelStride(depth) +
           row * kTileColumns;
  }
};

// c[rows, columns] (+)= a[rows, depth] B[first_row + ., columns of B from 0].
template <TileA kLayout>
SOFTMOE_INLINE void MultiplyPanels(int64_t rows, int64_t columns, int64_t depth,
                                   const float* a, int64_t a_stride,
                                   const Panels& b, int64_t first_row,
                                   int64_t first_column, float* c,
                                   int64_t c_stride, bool accumulate) {
  for (int64_t j = 0; j < columns; j += kTileColumns) {
    const int64_t width = Smaller(columns - j, kTileColumns);
    TileKernel<kLayout>(rows, width)(
        depth, a, a_stride, b.At(first_row, first_column + j), kTileColumns,
        c + j, c_stride, width, accumulate);
  }
}

int64_t ForwardScratch(const Shape& shape) {
  return Panels::Size(shape.head_dim, shape.length) +
         Panels::Size(shape.length, shape.head_dim) +
         kTileRows * (kScoreStride + AlignedFloats(shape.head_dim));
}

// Queries [begin, end), at most kTileRows, of one head.
void ForwardTile(const Shape& shape, const Panels& keys, const Panels& values,
                 const float* q, Range queries, float* scores, float* sums,
                 float* out, float* log_sum_exp) {
  const int64_t rows = queries.end - queries.begin;
  const int64_t sums_stride = AlignedFloats(shape.head_dim);
  const float scale = shape.scale();
  float largest[kTileRows], total[kTileRows];
  for (int64_t r = 0; r < rows; ++r) {
    largest[r] = kMinusInfinity;
    total[r] = 0;
  }
  for (int64_t first = 0; first < queries.end; first += kKeys) {
    const int64_t count = Smaller(kKeys, queries.end - first);
    MultiplyPanels<TileA::kRowMajor>(
        rows, count, shape.head_dim, q + queries.begin * shape.qkv_stride(),
        shape.qkv_stride(), keys, 0, first, scores, kScoreStride, false);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = scores + r * kScoreStride;
      // Keys up to the query itself; the rest of the tile's keys weigh 0.
      const int64_t own =
          Smaller(count, Larger(0, queries.begin + r + 1 - first));
      for (int64_t j = PaddedRow(own); j < count; ++j) row[j] = 0;
      if (own == 0) continue;  // the query is before this block of keys
      PadRow(row, own, kMinusInfinity);
      const float now = Max(largest[r], scale * RowMax(row, PaddedRow(own)));
      const float sum = ExpRow(row, PaddedRow(own), scale, now);
      if (first > 0) {
        const float shrink = Exp(largest[r] - now);
        total[r] = Fma(total[r], shrink, sum);
        ScaleRow(sums + r * sums_stride, sums_stride, shrink);
      } else {
        total[r] = sum;
      }
      largest[r] = now;
    }
    MultiplyPanels<TileA::kRowMajor>(rows, shape.head_dim, count, scores,
                                     kScoreStride, values, first, 0, sums,
                                     sums_stride, first > 0);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const Floats inverse(1.0f / total[r]);
    float* to = out + (queries.begin + r) * shape.width();
    for (int64_t j = 0; j < shape.head_dim; j += Floats::kWidth) {
      const int64_t left = shape.head_dim - j;
      StoreUpTo(to + j, left,
                LoadUpTo(sums + r * sums_stride + j, left) * inverse);
    }
    log_sum_exp[queries.begin + r] = largest[r] + Log(total[r]);
  }
}

// Queries `queries` of one head.
void ForwardHead(const Shape& shape, const float* q, Range queries, float* out,
                 float* log_sum_exp, float* scratch) {
  const int64_t stride = shape.qkv_stride(), dim = shape.head_dim;
  const Panels keys{scratch, dim};
  scratch += Panels::Size(dim, shape.length);
  const Panels values{scratch, queries.end};
  scratch += Panels::Size(queries.end, dim);
  PackPanelsTransposed(StridedRows(q + shape.width(), stride), 0, dim, 0,
                       queries.end, keys.data);
  PackPanels(StridedRows(q + 2 * shape.width(), stride), 0, queries.end, 0, dim,
             values.data);
  const int64_t count = queries.end - queries.begin;
  const int64_t tiles = CeilDiv(count, kTileRows);
  for (int64_t t = 0; t < tiles; ++t) {
    const Range tile = Piece(count, tiles, t);
    ForwardTile(shape, keys, values, q,
                {queries.begin + tile.begin, queries.begin + tile.end}, scratch,
                scratch + kTileRows * kScoreStride, out, log_sum_exp);
  }
}

// Memory of the backward pass of one head.
struct BackwardPanels {
  Panels keys_t, values_t;  // [head_dim, length]
  Panels keys;              // [length, head_dim]
  Panels q, d_out;          // [kBackwardQueries, head_dim]
  float* weights;           // [kBackwardQueries, kBackwardStride]: P
  float* d_scores;          // the same: scale * P * (dP - delta)
  float* delta;             // [length]: <d_out, out>

  BackwardPanels(const Shape& shape, float* scratch) {
    const auto take = [&](int64_t floats) {
      float* part = scratch;
      scratch += AlignedFloats(floats);
      return part;
    };
    const int64_t dim = shape.head_dim, length = shape.length;
    keys_t = {take(Panels::Size(dim, length)), dim};
    values_t = {take(Panels::Size(dim, length)), dim};
    keys = {take(Panels::Size(length, dim)), length};
    q = {take(Panels::Size(kBackwardQueries, dim)), kBackwardQueries};
    d_out = {take(Panels::Size(kBackwardQueries, dim)), kBackwardQueries};
    weights = take(kBackwardQueries * kBackwardStride);
    d_scores = take(kBackwardQueries * kBackwardStride);
    delta = take(length);
  }
  static int64_t Scratch(const Shape& shape) {
    return 2 * Panels::Size(shape.head_dim, shape.length) +
           Panels::Size(shape.length, shape.head_dim) +
           2 * Panels::Size(kBackwardQueries, shape.head_dim) +
           2 * kBackwardQueries * kBackwardStride +
           AlignedFloats(shape.length) + 128;
  }
};

// One head: pointers to its column 0 in token 0 of the sequence.
struct BackwardHead {
  const float* q;
  const float* out;
  const float* d_out;
  const float* log_sum_exp;
  float* d_q;
};

// P and d_scores of queries [queries) against keys [keys); zero where a key
// comes after the query.
void BackwardScores(const Shape& shape, const BackwardHead& head,
                    const BackwardPanels& panels, Range queries, Range keys) {
  const float scale = shape.scale();
  const int64_t count = queries.end - queries.begin;
  const int64_t tiles = CeilDiv(count, kTileRows);
  for (int64_t t = 0; t < tiles; ++t) {
    const Range tile = Piece(count, tiles, t);
    const int64_t rows = tile.end - tile.begin;
    const int64_t first_query = queries.begin + tile.begin;
    // This tile sees the first `seen` keys; the rest of the block is blanked.
    const int64_t all = keys.end - keys.begin;
    const int64_t seen =
        Smaller(all, Larger(0, first_query + rows - keys.begin));
    float* weights = panels.weights + tile.begin * kBackwardStride;
    float* d_scores = panels.d_scores + tile.begin * kBackwardStride;
    MultiplyPanels<TileA::kRowMajor>(
        rows, seen, shape.head_dim, head.q + first_query * shape.qkv_stride(),
        shape.qkv_stride(), panels.keys_t, 0, keys.begin, weights,
        kBackwardStride, false);
    MultiplyPanels<TileA::kRowMajor>(
        rows, seen, shape.head_dim, head.d_out + first_query * shape.width(),
        shape.width(), panels.values_t, 0, keys.begin, d_scores,
        kBackwardStride, false);
    for (int64_t r = 0; r < rows; ++r) {
      float* p = weights + r * kBackwardStride;
      float* d = d_scores + r * kBackwardStride;
      const int64_t own =
          Smaller(all, Larger(0, first_query + r + 1 - keys.begin));
      const Floats factor(scale), delta(panels.delta[first_query + r]);
      const Floats shift(-head.log_sum_exp[first_query + r]);
      for (int64_t j = own; j < PaddedRow(own); ++j) {
        p[j] = kMinusInfinity;
        d[j] = 0;
      }
      for (int64_t j = 0; j < PaddedRow(own); j += Floats::kWidth) {
        const Floats weight = Exp(Fma(Floats::Load(p + j), factor, shift));
        weight.Store(p + j);
        (weight * factor * (Floats::Load(d + j) - delta)).Store(d + j);
      }
      for (int64_t j = PaddedRow(own); j < all; ++j) p[j] = d[j] = 0;
    }
  }
}

// d_k and d_v of keys [keys) from queries [queries); the first queries that
// see a key are in the block that begins at or before it.
void BackwardKeys(const Shape& shape, const BackwardHead& head,
                  const BackwardPanels& panels, Range queries, Range keys) {
  const int64_t stride = shape.qkv_stride();
  // Keys before this block of queries have sums already: add to them.
  const int64_t middle = Smaller(keys.end, Larger(keys.begin, queries.begin));
  for (const Range part :
       {Range{keys.begin, middle}, Range{middle, keys.end}}) {
    const int64_t count = part.end - part.begin;
    const int64_t tiles = CeilDiv(count, kTileRows);
    for (int64_t t = 0; t < tiles; ++t) {
      const Range tile = Piece(count, tiles, t);
      const int64_t rows = tile.end - tile.begin;
      const int64_t key = part.begin + tile.begin;
      // Earlier queries do not see these keys.
      const int64_t skip = Larger(0, key - queries.begin);
      const int64_t depth = queries.end - queries.begin - skip;
      const int64_t at = skip * kBackwardStride + key - keys.begin;
      const bool accumulate = key < queries.begin;
      float* d_k = head.d_q + shape.width() + key * stride;
      MultiplyPanels<TileA::kInterleaved>(
          rows, shape.head_dim, depth, panels.d_scores + at, kBackwardStride,
          panels.q, skip, 0, d_k, stride, accumulate);
      MultiplyPanels<TileA::kInterleaved>(
          rows, shape.head_dim, depth, panels.weights + at, kBackwardStride,
          panels.d_out, skip, 0, d_k + shape.width(), stride, accumulate);
    }
  }
}

// d_q of queries [queries) from keys [keys).
void BackwardQueries(const Shape& shape, const BackwardHead& head,
                     const BackwardPanels& panels, Range queries, Range keys) {
  const int64_t count = queries.end - queries.begin;
  const int64_t tiles = CeilDiv(count, kTileRows);
  for (int64_t t = 0; t < tiles; ++t) {
    const Range tile = Piece(count, tiles, t);
    const int64_t query = queries.begin + tile.begin;
    const int64_t seen = Smaller(keys.end, queries.begin + tile.end);
    if (seen <= keys.begin) continue;
    MultiplyPanels<TileA::kRowMajor>(
        tile.end - tile.begin, shape.head_dim, seen - keys.begin,
        panels.d_scores + tile.begin * kBackwardStride, kBackwardStride,
        panels.keys, keys.begin, 0, head.d_q + query * shape.qkv_stride(),
        shape.qkv_stride(), keys.begin > 0);
  }
}

void BackwardOneHead(const Shape& shape, const BackwardHead& head,
                     float* scratch) {
  BackwardPanels panels(shape, scratch);
  const int64_t stride = shape.qkv_stride(), dim = shape.head_dim;
  const float* k = head.q + shape.width();
  const float* v = k + shape.width();
  PackPanelsTransposed(StridedRows(k, stride), 0, dim, 0, shape.length,
                       panels.keys_t.data);
  PackPanelsTransposed(StridedRows(v, stride), 0, dim, 0, shape.length,
                       panels.values_t.data);
  PackPanels(StridedRows(k, stride), 0, shape.length, 0, dim, panels.keys.data);
  for (int64_t t = 0; t < shape.length; ++t) {
    panels.delta[t] = DotRows(head.out + t * shape.width(),
                              head.d_out + t * shape.width(), dim);
  }
  for (int64_t first = 0; first < shape.length; first += kBackwardQueries) {
    const Range queries{first, Smaller(first + kBackwardQueries, shape.length)};
    const int64_t count = queries.end - queries.begin;
    panels.q.depth = panels.d_out.depth = count;
    PackPanels(StridedRows(head.q, stride), first, count, 0, dim,
               panels.q.data);
    PackPanels(StridedRows(head.d_out, shape.width()), first, count, 0, dim,
               panels.d_out.data);
    for (int64_t key = 0; key < queries.end; key += kBackwardKeys) {
      const Range keys{key, Smaller(key + kBackwardKeys, queries.end)};
      BackwardScores(shape, head, panels, queries, keys);
      BackwardKeys(shape, head, panels, queries, keys);
      BackwardQueries(shape, head, panels, queries, keys);
    }
  }
}

}  // namespace

void AttentionForward(const AttentionForwardArgs& args, ThreadPool& pool) {
  const Shape shape{args.sequence_length, args.num_heads, args.head_dim};
  const int64_t heads = args.num_sequences * args.num_heads;
  if (heads == 0 || shape.length == 0) return;
  // With few heads, queries are cut, too, into parts of equal area under the
  // causal mask. Each part packs the keys again.
  const int64_t parts = Smaller(CeilDiv(2 * pool.threads(), heads),
                                CeilDiv(shape.length, 4 * kTileRows));
  const auto boundary = [&](int64_t part) {
    const double share = static_cast<double>(part) / static_cast<double>(parts);
    return part == parts
               ? shape.length
               : static_cast<int64_t>(static_cast<double>(shape.length) *
                                      __builtin_sqrt(share));
  };
  pool.ParallelFor(heads * parts, [&](int64_t task) {
    const int64_t part = task / heads;
    const int64_t sequence = task % heads / shape.num_heads;
    const int64_t head = task % shape.num_heads;
    const int64_t token = sequence * shape.length;
    ForwardHead(shape,
                args.qkv + token * shape.qkv_stride() + head * shape.head_dim,
                {boundary(part), boundary(part + 1)},
                args.out + token * shape.width() + head * shape.head_dim,
                args.log_sum_exp + (task % heads) * shape.length,
                ThreadScratch(ScratchSlot::kTask, ForwardScratch(shape)));
  });
}

void AttentionBackward(const AttentionBackwardArgs& args, ThreadPool& pool) {
  const Shape shape{args.sequence_length, args.num_heads, args.head_dim};
  pool.ParallelFor(args.num_sequences * args.num_heads, [&](int64_t task) {
    const int64_t token = task / shape.num_heads * shape.length;
    const int64_t column = task % shape.num_heads * shape.head_dim;
    const int64_t at_qkv = token * shape.qkv_stride() + column;
    const int64_t at_out = token * shape.width() + column;
    BackwardOneHead(
        shape,
        {args.qkv + at_qkv, args.out + at_out, args.d_out + at_out,
         args.log_sum_exp + task * shape.length, args.d_qkv + at_qkv},
        ThreadScratch(ScratchSlot::kTask, BackwardPanels::Scratch(shape)));
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
